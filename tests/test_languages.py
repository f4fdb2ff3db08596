"""Every verb with every language of docs/languages.md: it works, or refuses the language by its name.

The walk also makes the table of that page; LIKEWISE_WRITE_TABLES=1 writes it.
"""

import os
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.adaptation import adaptation_flow
from likewise.adaptation.head import HeadTrainingOptions
from likewise.corpus.words import DividedText
from likewise.errors import LikewiseError
from likewise.searching.choose import choice_flow
from likewise.searching.query.typed_query import known_language

PAGE = Path(__file__).parents[1] / "docs" / "languages.md"
PARTS = {
    "English": (
        "The pump in the cellar/The fan of the office/The new technician/Our old customer",
        "came last night/called this morning/wrote in May",
        "because the water was cold/and the neighbour heard it/so that nobody slept here",
    ),
    "German": (
        "Die Pumpe im Keller/Der Lüfter im Büro/Die neue Technikerin/Unser alter Kunde",
        "kam gestern Abend/rief heute Morgen an/schrieb im Mai",
        "weil das Wasser kalt war/und der Nachbar hörte es/sodass hier niemand schlief",
    ),
    "French": (
        "La pompe de la cave/Le ventilateur du bureau/La nouvelle technicienne/Notre ancien client",
        "est venu hier soir/a appelé ce matin/a écrit au mois de mai",
        "parce que l'eau était froide/et le voisin l'a entendu/et personne n'a dormi ici",
    ),
    "Spanish": (
        "La bomba del sótano/El ventilador de la oficina/La nueva técnica/Nuestro antiguo cliente",
        "vino ayer por la noche/llamó esta mañana/escribió en mayo",
        "porque el agua estaba fría/y el vecino lo oyó/y nadie durmió aquí",
    ),
    "Italian": (
        "La pompa della cantina/Il ventilatore dell'ufficio/La nuova tecnica/Il nostro vecchio cliente",
        "è venuto ieri sera/ha chiamato stamattina/ha scritto nel mese di maggio",
        "perché l'acqua era fredda/e il vicino lo ha sentito/e nessuno ha dormito qui",
    ),
    "Dutch": (
        "De pomp in de kelder/De ventilator van het kantoor/De nieuwe monteur/Onze oude klant",
        "kwam gisteravond/belde vanmorgen/schreef in mei",
        "omdat het water koud was/en de buurman hoorde het/zodat hier niemand sliep",
    ),
    "Polish": (
        "Pompa w piwnicy/Wentylator w biurze/Nowa specjalistka/Nasz dawny klient",
        "przyszedł wczoraj wieczorem/zadzwonił dziś rano/napisał w maju",
        "bo woda była zimna/i sąsiad to usłyszał/więc nikt tu nie spał",
    ),
    "Portuguese": (
        "A bomba da cave/O ventilador do escritório/A nova técnica/O nosso antigo cliente",
        "veio ontem à noite/ligou esta manhã/escreveu em maio",
        "porque a água estava fria/e o vizinho não gostou/e ninguém dormiu aqui",
    ),
    "Russian": (
        "Насос в подвале/Вентилятор в офисе/Новый техник/Наш старый клиент",
        "пришёл вчера вечером/позвонил сегодня утром/написал в мае",
        "потому что вода была холодной/и сосед это услышал/и никто здесь не спал",
    ),
    "Greek": (
        "Η αντλία στο υπόγειο/Ο ανεμιστήρας του γραφείου/Η νέα τεχνικός/Ο παλιός μας πελάτης",
        "ήρθε χθες το βράδυ/τηλεφώνησε σήμερα το πρωί/έγραψε τον Μάιο",
        "επειδή το νερό ήταν κρύο/και ο γείτονας το άκουσε/και κανείς δεν κοιμήθηκε εδώ",
    ),
    "Chinese": (
        "地下室的水泵/办公室的空调/新来的技术员/我们的老客户",
        "昨天晚上来了/今天早上打了电话/五月份写了信",
        "因为水太冷了/邻居也听见了/这里没有人睡觉",
    ),
    "Japanese": (
        "地下室のポンプは/会社の換気扇は/新しい技術者は/古いお客様は",
        "昨日の夜に来ました/今朝電話をしました/五月に手紙を書きました",
        "水が冷たかったからです/隣の人も聞きました/ここでは誰も寝ませんでした",
    ),
    "Korean": (
        "지하실의 펌프는/사무실의 환풍기는/새로운 기술자는/우리의 오랜 고객은",
        "어제 저녁에 왔습니다/오늘 아침에 전화했습니다/오월에 편지를 썼습니다",
        "물이 차가웠기 때문입니다/이웃도 그것을 들었습니다/여기서는 아무도 자지 않았습니다",
    ),
    "Thai": (
        "ปั๊มน้ำในห้องใต้ดิน/พัดลมในสำนักงาน/ช่างเทคนิคคนใหม่/ลูกค้าเก่าของเรา",
        "มาเมื่อคืนนี้/โทรมาเมื่อเช้านี้/เขียนจดหมายในเดือนพฤษภาคม",
        "เพราะน้ำเย็นมาก/และเพื่อนบ้านก็ได้ยิน/จึงไม่มีใครนอนหลับที่นี่",
    ),
    "Arabic": (
        "المضخة في القبو/المروحة في المكتب/الفني الجديد/زبوننا القديم",
        "جاء مساء أمس/اتصل هذا الصباح/كتب في شهر مايو",
        "لأن الماء كان باردا/وسمع الجار ذلك/ولم ينم أحد هنا",
    ),
    "Hindi": (
        "तहखाने का पंप/दफ़्तर का पंखा/नया तकनीशियन/हमारा पुराना ग्राहक",
        "कल रात आया था/आज सुबह फ़ोन पर था/मई में लिख रहा था",
        "क्योंकि पानी ठंडा था/और पड़ोसी ने यह सुना/इसलिए यहाँ कोई नहीं सोया",
    ),
    "Turkish": (
        "Bodrumdaki pompa/Ofisin vantilatörü/Yeni teknisyen/Eski müşterimiz",
        "dün akşam geldi/bu sabah aradı/mayıs ayında yazdı",
        "çünkü su çok soğuktu/ve komşu bunu duydu/bu yüzden burada kimse uyumadı",
    ),
    "Vietnamese": (
        "Máy bơm dưới tầng hầm/Quạt của văn phòng/Kỹ thuật viên mới/Khách hàng cũ của chúng tôi",
        "đã đến tối hôm qua/đã gọi sáng nay/đã viết thư vào tháng năm",
        "vì nước rất lạnh/và hàng xóm đã nghe thấy/nên không ai ngủ ở đây",
    ),
}
"""The parts of which 36 sentences of each language are made: subjects, events and circumstances."""
WITHOUT_BLANKS = ("Chinese", "Japanese", "Thai")
ENGLISH_ALONE = ("train sncse", "train exclusion", "negate")
LITTLE = {"quiet": True, "select_by": "last", "max_steps": 1, "batch_size": 4, "precision": "fp32", "max_length": 24}
WORDS = {**LITTLE, "sentences": 16, "filters": 4, "projection": 8, "bottleneck": 4, "group_size": 4}
del WORDS["max_length"]


def sentences_in(language: str) -> list[str]:
    stop = {"Chinese": "。", "Japanese": "。", "Hindi": "।", "Thai": ""}.get(language, ".")
    between = "" if language in WITHOUT_BLANKS else " "
    return [between.join(parts) + stop for parts in product(*(part.split("/") for part in PARTS[language]))]


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """A fine-tuned encoder of one layer with random weights, of which each character of all languages is a token."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("letters")
    signs = sorted({sign for language in PARTS for text in sentences_in(language) for sign in text.lower()} - {" "})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{sign}" for sign in signs)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(vocabulary), **size), add_pooling_layer=False).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt"), strip_accents=False, model_max_length=128).save_pretrained(folder)
    model = SentenceTransformer(modules=[Transformer(str(folder)), Pooling(16, "mean")], device="cpu")
    model.save(str(folder / "encoder"), create_model_card=False)
    return folder / "encoder"


def learns(recipe: str, language: str, base: Path, out: Path, **options: object) -> bool:
    """Return whether a training changes the vectors of the base, or gives each sentence its own."""
    made = likewise.train(recipe, sentences_in(language), base=base, out=out, **(LITTLE | options))
    texts = sentences_in(language)[:4]
    vectors = likewise.load(made.path).encode(texts)
    before = likewise.load(base).encode(texts)
    return bool(np.isfinite(vectors).all()) and (vectors.shape != before.shape or not np.allclose(vectors, before))


def learns_from_word_vectors(language: str, base: Path, out: Path) -> bool:
    words = sorted(
        {word.strip(".。।").lower() for text in sentences_in(language) for word in DividedText.of(text).words}
    )
    out.mkdir()
    numbers = np.random.default_rng(0).normal(size=(len(words), 8))
    lines = (f"{word} {' '.join(f'{x:.3f}' for x in row)}\n" for word, row in zip(words, numbers, strict=True))
    (out / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    options: dict[str, object] = {**WORDS, "preset": "cpu", "warmup_epochs": 0}
    made = likewise.train("gclsr", sentences_in(language), base=str(out / "vectors.txt"), out=out / "model", **options)
    vectors = likewise.load(made.path).encode(sentences_in(language))
    return len(np.unique(vectors.round(5), axis=0)) > 0.9 * len(vectors)  # words without a vector would be one text


def counts_characters(language: str, base: Path, out: Path) -> bool:
    made = likewise.train_characters(sentences_in(language), out=out, width=512, quiet=True)
    vectors = likewise.load(made.path).encode(sentences_in(language))
    cosines = vectors @ vectors.T  # the sentences are in order: their subjects first
    return bool(cosines[:9, :9].mean() > cosines[:9, 9:].mean())


def stems_of(language: str) -> str:
    """Return the language whose stems a search takes: English for one that has none."""
    try:
        return known_language(language)
    except LikewiseError:
        return "English"


def passages_in(language: str, folder: Path) -> Path:
    """Write twelve passages of three sentences, and return their file."""
    folder.mkdir()
    texts = sentences_in(language)
    gap = "" if language in ("Chinese", "Japanese") else " "
    passages = [gap.join(texts[place::12]) for place in range(12)]
    (folder / "text.txt").write_text("\n\n".join(passages) + "\n", encoding="utf-8")
    return folder / "text.txt"


def adapts(language: str, base: Path, out: Path) -> bool:
    text = passages_in(language, out)
    return (likewise.adapt(text, base=base, out=out / "model", minutes=1, quiet=True).path / "modules.json").exists()


def chooses(language: str, base: Path, out: Path) -> bool:
    found = likewise.choose(passages_in(language, out), bases=[base], language=stems_of(language), quiet=True)
    return {"BM25", "a bag of characters"} <= {system.name for system in found.table}


def evaluates(language: str, base: Path, out: Path) -> bool:
    out.mkdir()
    texts = sentences_in(language)
    rows = [f"{5 - place % 3 * 2}\t{text}\t{texts[(place + place % 3 * 7) % 36]}" for place, text in enumerate(texts)]
    (out / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (out / "text.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    task = f"pairs:{out / 'pairs.tsv'}"
    return likewise.evaluate(f"characters:{out / 'text.txt'}", task)[task].score > 50


def repeats(language: str, base: Path, out: Path) -> bool:
    texts = sentences_in(language)[::13]  # each is of other parts
    return likewise.duplicates([*texts, f" {texts[2]}"], model=base, quiet=True).groups == ((2, 3),)


def negates(language: str, base: Path, out: Path) -> bool:
    made = likewise.negate(sentences_in(language))
    return sum(map(bool, made)) > len(made) / 2 and not set(made) & set(sentences_in(language))


def finds(language: str, base: Path, out: Path) -> bool:
    texts, wanted = sentences_in(language), sentences_in(language)[17]
    found = likewise.index(texts, model=base, out=out / "my.index", language=stems_of(language), quiet=True)
    return likewise.search(found, wanted.rstrip(".。।"), 1, words_only=True)[0].text == wanted


VERBS: dict[str, Callable[[str, Path, Path], bool]] = {
    "train simcse": partial(learns, "simcse"),
    "train arccse": partial(learns, "arccse"),
    "train sncse": partial(learns, "sncse", max_length=32),
    "train sncse --negation none": partial(learns, "sncse", negation="none", max_length=32),
    "train gclsr": learns_from_word_vectors,
    "train light": partial(learns, "light", hidden=32, words=50),
    "train characters": counts_characters,
    "train exclusion": partial(learns, "exclusion"),
    "adapt": adapts,
    "choose": chooses,
    "evaluate": evaluates,
    "duplicates": repeats,
    "negate": negates,
    "index, search": finds,
}


@pytest.fixture(scope="module")
def outcome(letters, tmp_path_factory):
    """A function from a verb and a language to 'works', or to the refusal; each is tried once."""
    root = tmp_path_factory.mktemp("languages")

    @cache
    def tried(verb: str, language: str) -> str:
        try:
            works = VERBS[verb](language, letters, root / f"{verb}-{language}".replace(" ", "-").replace(",", ""))
        except LikewiseError as refusal:
            return str(refusal)
        return "works" if works else "is wrong"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptation_flow, "HeadTrainingOptions", partial(HeadTrainingOptions, steps=2, batch_size=8))
        patch.setattr(choice_flow, "LEAST", 3)
        patch.setenv("LIKEWISE_CACHE", str(root / "cache"))
        yield tried


@pytest.mark.parametrize("language", PARTS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_works_or_names_the_language(verb, language, outcome):
    if verb in ENGLISH_ALONE and language != "English":
        assert f"are in {language}" in outcome(verb, language)
    else:
        assert outcome(verb, language) == "works"


def test_the_page_has_the_table(outcome):
    head = "<!-- table: verbs -->\n"
    rows = ["| verb | works | refused by name |", "| --- | --- | --- |"]
    for verb in VERBS:
        works = [language for language in PARTS if outcome(verb, language) == "works"]
        others = len(PARTS) - len(works)
        named = f"all {len(PARTS)}" if not others else ", ".join(works)
        rows.append(f"| `{verb}` | {named} | {f'the other {others}' if others else ''} |")
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(head)
    written = before + head + "\n".join(rows) + "\n" + rest[rest.index("<!-- end -->") :]
    if os.environ.get("LIKEWISE_WRITE_TABLES"):
        PAGE.write_text(written, encoding="utf-8")
    assert page == written, "docs/languages.md: run LIKEWISE_WRITE_TABLES=1 pytest tests/test_languages.py"

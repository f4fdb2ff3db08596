"""Passages of any language fit the model, are sentences, and lose nothing."""

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from likewise import index
from likewise.corpus import CorpusOptions
from likewise.corpus.sentence_splitter import sentences_of
from likewise.searching import Index
from likewise.searching.index.passages import Splitting, TokenLimit

SENTENCES = {
    "English": ["The pump in the cellar is broken and loses oil.", "Does it run?", "The technician replaces the seal."],
    "German": [
        "Die Kreiselpumpe im Kellergeschoss ist undicht.",
        "Läuft sie?",
        "Die Gleitringdichtung wird getauscht.",
    ],
    "Spanish": ["La bomba del sótano está rota.", "¿Funciona?", "¡Hay que cambiar la junta hoy!"],
    "Russian": ["Насос в подвале сломан и теряет масло.", "Он работает?", "Техник заменит уплотнение."],
    "Greek": ["Η αντλία στο υπόγειο έχει χαλάσει.", "Ο τεχνικός θα αλλάξει το παρέμβυσμα."],
    "Chinese": ["地下室的水泵坏了，正在漏油。", "它还能用吗？", "技术人员必须更换密封圈！"],
    "Japanese": ["地下室のポンプが壊れています。", "動きますか？", "技術者がシールを交換します。"],
    "Korean": ["지하실의 펌프가 고장 났습니다.", "작동합니까?", "기술자가 씰을 교체합니다."],
    "Hindi": ["तहखाने का पंप खराब है।", "क्या यह चलता है?", "तकनीशियन सील बदलेगा।"],
    "Arabic": ["المضخة في القبو معطلة وتسرب الزيت.", "هل تعمل؟", "سيقوم الفني باستبدال الختم."],
    "Thai": ["ปั๊มในชั้นใต้ดินเสียและน้ำมันรั่วออกมาทั้งคืนจนเปียก", "ช่างต้องเปลี่ยนซีลใหม่ภายในวันนี้ให้เสร็จเรียบร้อย"],
    "Urdu": ["تہہ خانے کا پمپ خراب ہے۔", "کیا یہ چلتا ہے؟"],
}
UNSPACED = ("Chinese", "Japanese")


def joined(language, times=1):
    return ("" if language in UNSPACED else " ").join(SENTENCES[language] * times)


@pytest.fixture(scope="module")
def by_bytes():
    """A tokenizer with a token for each byte, of which every language has others than words."""
    tokenizer = Tokenizer(BPE({sign: i for i, sign in enumerate(sorted(ByteLevel.alphabet()))}, []))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    return tokenizer


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_divided(language):
    assert sentences_of(joined(language)) == SENTENCES[language]


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("layout", ["prose", "one line", "row"])
def test_passages_have_no_more_tokens_than_the_model_reads(language, layout, by_bytes, tmp_path):
    text = joined(language, 30)
    path, options = tmp_path / "a.txt", CorpusOptions()
    if layout == "row":
        import json

        path, options = tmp_path / "a.jsonl", CorpusOptions(field="text")
        path.write_text(json.dumps({"title": SENTENCES[language][0], "text": text}))
    else:
        path.write_text(f"# {SENTENCES[language][0]}\n\n{text}\n" if layout == "prose" else f"{text}\n")
        path = path.rename(tmp_path / "a.md") if layout == "prose" else path
    limit = TokenLimit(300, lambda: by_bytes, "passage: ")
    passages = list(Splitting(180, options, limit=limit).read(path))
    assert len(passages) > 5
    for passage in passages:
        assert len(by_bytes.encode(f"passage: {passage.encoded}").ids) <= 300
    assert "".join("".join(one.text.split()) for one in passages) == "".join(text.split())


@pytest.mark.parametrize("text", ["x" * 5000, "水" * 5000, "word " * 3000, "👍" * 900, "| a | b |\n" * 900])
def test_what_has_no_end_of_a_sentence_is_cut(text, by_bytes, tmp_path):
    (tmp_path / "a.txt").write_text(text)
    limit = TokenLimit(120, lambda: by_bytes)
    passages = list(Splitting(40, CorpusOptions(), limit=limit).read(tmp_path / "a.txt"))
    assert all(len(by_bytes.encode(one.encoded).ids) <= 120 for one in passages)
    assert "".join("".join(one.text.split()) for one in passages) == "".join(text.split())


def test_an_index_has_no_longer_passages_than_its_model_reads(saved_model, tmp_path):
    from sentence_transformers import SentenceTransformer

    (tmp_path / "a.txt").write_text("\n\n".join(joined(language, 20) for language in SENTENCES))
    index(tmp_path / "a.txt", model=saved_model, out=tmp_path / "a.index", quiet=True)
    model = SentenceTransformer(str(saved_model))
    rows = Index(tmp_path / "a.index").table._select(["searched"])["searched"].to_pylist()
    lengths = [len(model.tokenizer(text, truncation=False)["input_ids"]) for text in rows]
    assert len(rows) > 20
    assert max(lengths) <= model.max_seq_length


def test_a_long_text_without_an_end_takes_time_in_proportion(tmp_path):
    import time

    (tmp_path / "b.txt").write_text("x" * 500_000)
    assert max(len(one.text) for one in Splitting(180, CorpusOptions()).read(tmp_path / "b.txt")) < 10_000
    took = []
    for size in (500_000, 2_000_000):
        (tmp_path / "a.txt").write_text("pump leaks " * (size // 11))
        begun = time.process_time()
        assert sum(1 for _ in Splitting(180, CorpusOptions()).read(tmp_path / "a.txt")) > 100
        took.append(time.process_time() - begun)
    assert took[1] < 12 * took[0] + 0.5

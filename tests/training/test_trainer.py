import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments

from likewise.encoder.attention import only_pooled_token
from likewise.encoder.build import build_encoder
from likewise.recipes import RECIPES
from likewise.recipes.arccse import ArcCSEOptions
from likewise.training.batches import LengthBatchSampler, lengths_of
from likewise.training.trainer import LikewiseTrainer, TwoPassSAM

ARCCSE = RECIPES["arccse"]
RHO, RATE = 0.05, 1e-2
EPSILON = 1e-3  # AdamW's, above the rounding of gradients: at 1e-8 one near zero moves a weight by either sign


@pytest.mark.parametrize("updates", [1, 2])
def test_sam_over_accumulated_passes_is_sam_over_their_mean(tiny_base, sentences, tmp_path, updates):
    """Updates of two passes in the trainer, beside the same by hand. Triplets alone: no dropout, no chance."""
    options = ARCCSE.options(contrastive="none", triplet_weight=1.0, triplet_margin=0.5, triplet_min_words=1)
    n = 8 * updates
    rows = Dataset.from_dict({"sentence": sentences[:n], "words": [len(s.split()) for s in sentences[:n]]})

    def build():
        torch.manual_seed(0)
        encoder = ARCCSE.build_encoder(str(tiny_base), options)
        return encoder, ARCCSE.build_collator(encoder, options, 1), ARCCSE.build_loss(encoder, options)

    encoder, collator, loss = build()
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path), per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=updates,
        learning_rate=RATE, lr_scheduler_type="constant", max_grad_norm=0, report_to="none", disable_tqdm=True,
        save_strategy="no", seed=5, use_cpu=True, remove_unused_columns=False, dataloader_drop_last=True,
        weight_decay=0.0, adam_epsilon=EPSILON,
    )  # fmt: skip
    chosen = options.updated(sam_rho=RHO, length_batches=True)
    trainer = LikewiseTrainer(
        chosen, model=encoder, args=arguments, train_dataset=rows, loss=loss, data_collator=collator
    )
    trainer.train()

    by_hand, collator, loss = build()
    by_hand.train()
    lengths = lengths_of(rows, by_hand)
    batches = [collator([rows[i] for i in batch]) for batch in LengthBatchSampler(lengths, 4, seed=5)]
    sam = TwoPassSAM(by_hand.parameters(), torch.optim.AdamW, rho=RHO, lr=RATE, eps=EPSILON, weight_decay=0.0)
    for update in range(updates):
        sam.zero_grad()
        for half in (lambda: sam.first_step(zero_grad=True), sam.step):
            for batch in batches[2 * update : 2 * update + 2]:
                columns = [
                    {key.removeprefix(name): value for key, value in batch.items() if key.startswith(name)}
                    for name in ("sentence_", "triplet_")
                ]
                with only_pooled_token(by_hand):  # as the trainer
                    (sum(loss(columns).values()) / 2).backward()
            half()
    trained = dict(trainer.model.named_parameters())
    start = dict(build()[0].named_parameters())
    moved = [name for name, value in by_hand.named_parameters() if not torch.equal(value, start[name])]
    assert len(moved) > 20
    for name, value in by_hand.named_parameters():
        # A step is the rate at most: a thousandth of it is agreement.
        assert torch.allclose(trained[name], value, rtol=0, atol=RATE / 1000), name


@pytest.mark.parametrize(("devices", "rows"), [(1, 1), (2, 11)])
def test_the_last_layer_is_short_but_where_modules_are_copied(tiny_base, tmp_path, devices, rows):
    """torch.nn.DataParallel copies modules to each device: there the layer stays as it is."""
    encoder = build_encoder(str(tiny_base), pooling="cls", head=False)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path), max_steps=1, report_to="none", disable_tqdm=True, use_cpu=True
    )
    texts = ["the cat sees the dog near the old river"] * 2  # 11 tokens
    trainer = LikewiseTrainer(
        ARCCSE.options(sam_rho=0.0), model=encoder, args=arguments,
        train_dataset=Dataset.from_dict({"sentence": texts}),
        loss=ARCCSE.build_loss(encoder, ArcCSEOptions(triplet_weight=0)),
    )  # fmt: skip
    seen = []
    last = encoder[0].auto_model.encoder.layer[-1]
    last.intermediate.register_forward_hook(lambda module, inputs, output: seen.append(output.shape[1]))
    trainer.args._n_gpu = devices
    trainer.current_gradient_accumulation_steps = 1  # as its loop sets it
    columns = {f"sentence_{key}": value for key, value in encoder.preprocess(texts).items()}
    trainer.training_step(encoder, columns)
    assert seen == [rows]

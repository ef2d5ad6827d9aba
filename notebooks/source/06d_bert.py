# %% [markdown]
r"""
# 06d · What does the encoder alone learn?

*The keys to the cabinet [mask] old.* Which word is hidden, *is* or *are*? You chose *are*, because of *keys*; the cabinet stands nearer, and did not fool you. How can a model learn that if nobody tells it what a subject is?

**Afterwards you can** turn any text into questions and train an encoder on them; find the head that a look points to; test by an intervention whether that head matters.

**Time** about 45 minutes. **You need** parts [04](04_multi_head.ipynb), [06a](06a_layer.ipynb) and [06b](06b_translator.ipynb). **Exercises**: [exercises/06_transformer](exercises/06_transformer.ipynb).

<details><summary>中文摘要</summary>
只用编码器,遮住一些词,让它从两边的词猜出来:这就是 BERT,不需要任何标注。在我们生成的句子里,动词的单复数由主语决定,中间的名词会误导。
种子 0 的模型里有一个头看着主语,遮住它就几乎全错;种子 1 只错三分之一;种子 2 里空格根本不必看主语。注意力图只是线索,干预才是检验。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.chapters.c06_transformer import agreement, bert_figures
from lesson_lib.chapters.c06_transformer import bert as model_of
from lesson_lib.chapters.c06_transformer.agreement import MASK
from lesson_lib.chapters.c06_transformer.experiments import bert as masked
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.device import quick, to_device
from lesson_lib.masks import padding

_ = torch.manual_seed(0)
warm_up()

# %%
predict("two_neighbours")

# %% [markdown]
r"""
## 1 · A text whose answers are known

Our sentences are generated. A verb agrees with its **subject** in **number**, singular or plural (*the key is*, *the keys are*). Other nouns stand between or in front, each with a number of its own:
"""

# %%
drawn = agreement.draw(torch.Generator().manual_seed(0), count=3, split="test")
for words, length in zip(drawn.words, drawn.lengths, strict=True):
    print(agreement.text(words[:length]))
for rule, share in agreement.rules(masked.sentences("test")).items():
    print(f"{rule:13} has the verb's number in {share:.2f}")

# %% [markdown]
r"""
In the first sentence the *keys need*; the letter in front misleads. Whoever trusts the first noun is right in 0.80 of 4,000 test sentences. A sentence is **misleading** where all other nouns before the verb have the wrong number.

## 2 · Hide words and ask

Hide words of a text, and let an encoder guess them from *both* sides. That is a **masked language model**; BERT is the best known. BERT chooses 15 in 100 words. Of the chosen, 80 in 100 become `[mask]`, 10 another word drawn by chance, and 10 stay. The model must guess all chosen words. It cannot tell which visible words were chosen, so it must have an opinion on every word.
"""

# %%
predict("how_many_masks")

# %% [markdown] tags=["exercise:hide_words"]
# Each of $b$ sentences of $n$ words has a number `fate` from 0 to 1 at each place. Write what the model sees.

# %%
batch = model_of.hide(drawn.words, drawn.lengths, torch.Generator().manual_seed(1))
for seen, chosen, length in zip(batch.seen, batch.chosen, batch.lengths, strict=True):
    places = chosen.nonzero()[:, 0].tolist()
    print(agreement.text(seen[:length]), "| asked: place", *places)

# %% [markdown]
r"""
`hide` draws the choice and the fates. Places count from 0.

The logits have the shape (b, n, 74): a score for each of 74 words at each place. The loss is the mean of $-\ln$ of the true word's probability (part 06b), at the chosen places alone.
"""

# %% [markdown] tags=["exercise:hidden_loss"]
# Write the loss.

# %% [markdown]
r"""
The model has two layers of part 06a with two heads each, and a learned table of positions. No mask is causal; only padding is hidden:
"""


# %%
def masked_logits(bert, seen, lengths):
    x = bert.embedding(seen)  # (b, n, 48)
    for layer in bert.encoder.layers:
        x = layer(x, mask=padding(lengths, seen.shape[1])).output
    return bert.embedding.logits(bert.encoder.norm(x)) + bert.bias  # (b, n, 74)


bert, _ = masked.train(seed=0)  # the loop of 06b, 1,800 batches of 64 sentences
seen, lengths = to_device((batch.seen, batch.lengths))
assert_close(masked_logits(bert, seen, lengths), bert(seen, lengths))

# %% tags=["nbval-ignore-output"]
sentence = "the keys to the cabinet [mask] old"
for guess in model_of.fill(bert, sentence, top=4):
    print(f"{guess.word:6} {guess.probability:.2f}")

# %%
plural = {plural for _, plural in agreement.VERBS}
assert quick() or {guess.word for guess in model_of.fill(bert, sentence, top=4)} < plural
bert_figures.by_nouns_between()

# %% [markdown]
r"""
The four likeliest words are plural, each near a quarter: the grammar has four verbs before *old*. In the figure BERT is right in 0.98 or more even behind three misleading nouns. The count of two neighbours has 0.26 or less.

## 3 · Who found the subject?

A detective story in three seeds. Layers and heads count from 0. The **gap** is the place of `[mask]`. Where does it look?
"""

# %%
looked = model_of.maps(bert, sentence)
bert_figures.gap(looked.words, looked.weights)

# %% [markdown]
r"""
In layer 1, head 1 nearly all weight lies on *keys*. One sentence may be luck, so take 2,800 with a noun between, and hide each verb:
"""

# %%
given = masked.probed()  # words, and the places of subject and verb
weights = masked.looks(bert, given)  # the gap's rows: (layers, heads, sentences, n)
on_subject = (weights.argmax(-1) == given.subject).float().mean(-1)
assert quick() or on_subject[1, 1] > 0.95
bert_figures.looks(on_subject, masked.best_offset())

# %% [markdown]
r"""
In 0.99 of the sentences this head's largest weight lies on the subject; in the other heads never. Looking at one fixed distance would reach 0.31. A suspect! Is it guilty?
"""

# %%
predict("blind_one_head")

# %% [markdown] tags=["exercise:hidden_from_gap"]
# For the test, forbid one look: the gap (query) may not see the subject (key).

# %% [markdown]
r"""
`changed` lets one head obey such a table; everything else stays. `agrees` gives 1 where the true form of the verb is likelier than its other form.
"""

# %%
misled = given.take(given.misleading.nonzero()[::2, 0])  # 404 sentences
subject, before_gap = (
    to_device(masked.blind(misled, who)) for who in ("verb", "control")
)


def right_verbs():
    return masked.agrees(masked.at_verb(bert, misled), misled).mean().item()


shares = {"as it is": right_verbs()}
for name, head, table in (
    ("head 1: word\nbefore the gap", 1, before_gap),
    ("head 0:\nsubject", 0, subject),
    ("head 1:\nsubject", 1, subject),
):
    with model_of.changed(bert, layer=1, head=head, blind=table):
        shares[name] = right_verbs()
assert quick() or (min(list(shares.values())[:3]) > 0.95 and shares["head 1:\nsubject"] < 0.2)
bert_figures.blinded(shares)

# %% [markdown]
r"""
Hide another word, or blind the other head: nothing is lost. Hide the subject from head 1: about one verb in ten stays right. That is worse than a coin, since the model now believes the misleading nouns. In seed 0 the look was the cause.

## 4 · Two more seeds

**"Now we know how a BERT finds the subject."** We know one. Seed 1 differs only in its first random weights and the order of its batches. It also gets 0.996 of the misleading verbs right.
"""

# %%
bert_figures.stored_looks(1)

# %% [markdown]
r"""
The same head looks at the subject, but only in 0.49 of the sentences.
"""

# %%
predict("second_seed")

# %%
bert_figures.stored_blinded(1)

# %% [markdown]
r"""
Read the plain bars, where only the gap is blinded: layer 1, head 1 falls to 0.67; the other heads lose nothing. Then the hatched bars, where *no* word may see the subject: layer 0, head 0 falls to 0.60. So there *another* word looks at the subject, and the gap asks that word later.

Seed 2 is right in 0.999:
"""

# %%
bert_figures.stored_looks(2)

# %% [markdown]
r"""
Its best head hits the subject in 0.28, less than a fixed distance would.
"""

# %%
predict("third_seed")

# %%
bert_figures.stored_blinded(2)

# %% [markdown]
r"""
The last plain bar has 0.95: the gap need not see the subject at all. **"A head that never looks at the subject does not matter."** Layer 0, head 1 is such a head, from the gap. Hide the subject there from every word, and half of the verbs are wrong (0.50). With all heads blinded so, 0.12 are left. The number travels through other words, and the gap reads it there. No map of the gap's row shows that.

**A map is a lead; an intervention is a test.**

## In real work

Encoders alone read: they find documents, rank and classify texts (ModernBERT, the E5 family). torch's loss skips the places whose target is −100:
"""

# %%
logits = bert(seen, lengths).detach().cpu()
targets = batch.words.masked_fill(~batch.chosen, -100)
loss = F.cross_entropy(logits.transpose(1, 2), targets)  # wants (b, words, n)
assert_close(loss, F.cross_entropy(logits[batch.chosen], batch.words[batch.chosen]))
forgotten = F.cross_entropy(logits.transpose(1, 2), batch.words)

# %% tags=["nbval-ignore-output"]
print(f"loss {loss:.2f}, without -100 {forgotten:.2f}")

# %% [markdown]
r"""
The bug that people meet: somebody forgets −100, and the loss asks for visible words and padding as well. Trained so, a model learns to copy.

## The keys once more

Blind the one head in our sentence:
"""

# %%
words = agreement.read(sentence)
gap, keys = torch.tensor([5]), torch.tensor([1])
place = torch.arange(words.shape[1])
table = (place == gap[:, None])[:, :, None] & (place == keys[:, None])[:, None, :]
with model_of.changed(bert, layer=1, head=1, blind=to_device(table)):
    guesses = [guess.word for guess in model_of.fill(bert, sentence, top=4)]
assert quick() or not set(guesses) & plural
print(guesses) if quick() else print("no plural among the four likeliest words")

# %% [markdown]
r"""
Now the cabinet decides.

**To remember.** An encoder learns to read by guessing hidden words from both sides; a map shows where it looks, and only an intervention shows what it uses.

- 15 % chosen: 80 % `[mask]`, 10 % another word, 10 % as they are.
- The loss asks at the chosen places alone.
- Blind one head to one word, with a control beside it.
- Another seed can solve the same task another way.
- Information may travel through other words.

**Sources.** Devlin et al. 2018 (arXiv:1810.04805); Linzen et al. 2016 (arXiv:1611.01368); Jain & Wallace 2019, *Attention is not Explanation* (arXiv:1902.10186); Warner et al. 2024, ModernBERT (arXiv:2412.13663). Seeds, controls, claims: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06e · GPT](06e_gpt.ipynb): what does the decoder alone learn?
"""

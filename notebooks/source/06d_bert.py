# %% [markdown]
r"""
{title}

*The keys to the cabinet [mask] old.* Is *is* hidden, or *are*? The nearer *cabinet* did not fool you. Can a model learn that if nobody tells it what a subject is?

**Afterwards you can** turn any text into questions; train an encoder on them; test whether a head that looks right matters.

{about}

<details><summary>中文摘要 · Chinese</summary>
只用编码器,遮住一些词,让它从两边的词猜出来:这就是 BERT,不需要任何标注。在我们生成的句子里,动词的单复数由主语决定,中间的名词会误导。
本课写出遮词和损失,用它们训练模型;再遮住一个头的一次注视,看答案是否改变,并换两个种子重做。注意力图只是线索,干预才是检验。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.chapters.c06_transformer import agreement, bert_figures
from lesson_lib.chapters.c06_transformer import bert as model_of
from lesson_lib.chapters.c06_transformer.agreement import MASK
from lesson_lib.chapters.c06_transformer.experiments import bert as masked
from lesson_lib.chapters.c06_transformer.experiments import carried
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick, to_device
from lesson_lib.masks import padding
from lesson_lib.training import fit

_ = torch.manual_seed(0)
warm_up()

# %%
predict("two_neighbours")

# %% [markdown]
r"""
## 1 · A text whose answers are known

Our sentences are generated. A verb has the **number** of its **subject**, singular or plural (*the key is*, *the keys are*). Other nouns stand around:
"""

# %%
drawn = agreement.draw(torch.Generator().manual_seed(0), count=2, split="test")
for words, length in zip(drawn.words, drawn.lengths, strict=True):
    print(agreement.text(words[:length]))
for rule, share in agreement.rules(masked.sentences("test")).items():
    print(f"{share:.2f} {rule}")

# %% [markdown]
r"""
Simple rules fail on these 4,000 sentences: the best, "trust the first noun", is wrong in one of five. A sentence is **misleading** where nouns stand between subject and verb, and all nouns but the subject have the wrong number.

## 2 · Hide words and ask

A **masked language model** guesses hidden words from *both* sides. The best known, BERT (2018), chooses 15 % of the words at random. Of these, ‹80› % become `[mask]`, 10 % a random word, and 10 % stay. The model must guess all that are chosen. It cannot tell which visible words were chosen, so it must have an opinion on each.
"""

# %%
predict("how_many_masks")

# %% [markdown] tags=["exercise:hide_words"]
# A batch has $b$ sentences of $n$ words. At each place `chosen` says whether it is asked for, `fate` is a random number from 0 to 1, `other` a random word. Write what the model sees.


# %%
hide = yours("hide_words")


def questions(words, lengths, generator):
    chosen, fate, other = model_of.fates(words, lengths, generator)  # drawn
    seen = hide(words, chosen, fate, other)
    return model_of.Hidden(seen, lengths, words, chosen)


batch = questions(drawn.words, drawn.lengths, torch.Generator().manual_seed(1))
for seen, chosen, length in zip(batch.seen, batch.chosen, batch.lengths, strict=True):
    places = chosen.nonzero()[:, 0].tolist()
    print(agreement.text(seen[:length]), "|", *places)

# %% [markdown]
r"""
Behind the bar: the chosen places, from 0; place 4, *keys*, became a random word.

A model will give logits (b, n, 74), at each place a score for each word. The loss is the cross-entropy of 06b at the chosen places alone.
"""

# %% [markdown] tags=["exercise:hidden_loss"]
# Write the loss.

# %% [markdown]
r"""
The model: two layers of 06a, two heads each, a learned row for each place, a bias for each word. Only padding is hidden; no mask is causal:
"""


# %%
def masked_logits(bert, seen, lengths):
    x = bert.embedding(seen)  # (b, n, 48)
    for layer in bert.encoder.layers:
        x = layer(x, mask=padding(lengths, seen.shape[1])).output
    return bert.embedding.logits(bert.encoder.norm(x)) + bert.bias  # (b, n, 74)


loss_at = yours("hidden_loss")


def draw(generator):
    return questions(*masked.some(generator), generator)  # 64 sentences


def loss(bert, batch):
    logits = masked_logits(bert, batch.seen, batch.lengths)
    return loss_at(logits, batch.words, batch.chosen)


_ = torch.manual_seed(0)
bert = to_device(masked.make())  # untrained
losses = fit(bert, draw, loss, steps=1800, lr=1e-2).column("loss")

# %% tags=["proof"]
assert quick() or (losses[0] > 3 and losses[-1] < 2)

# %% tags=["nbval-ignore-output"]
print(*(f"{mean:.2f}" for mean in losses))  # of 180 batches each

# %% [markdown]
r"""
`fit` is the loop of 06b. The loss falls from «3.4» to «1.8», and never to 0: nobody can know which noun was hidden.
"""

# %% tags=["nbval-ignore-output"]
sentence = "the keys to the cabinet [mask] old"
for guess in model_of.fill(bert, sentence, top=4):  # likeliest words
    print(f"{guess.word:6} {guess.probability:.2f}")

# %%
plural = {plural for _, plural in agreement.VERBS}
likely = {guess.word for guess in model_of.fill(bert, sentence, top=4)}
bert_figures.by_nouns_between()

# %% tags=["proof"]
assert quick() or likely < plural

# %% [markdown]
r"""
*Are*, *were*, *seem*, *look*: all four forms are plural, each near a quarter, and only these four fit before *old*. BERT is right in 0.98 or more even behind three misleading nouns, the count in 0.26 or less.

## 3 · Who found the subject?

Layers and heads count from 0. The **gap** is the place of `[mask]`.
"""

# %% tags=["trained"]
looked = model_of.maps(bert, sentence)  # the weights of all heads
bert_figures.gap(looked.words, looked.weights)

# %% [markdown]
r"""
In layer 1, head 1 nearly all weight lies on *keys*; the other heads prefer *old* or *cabinet*. Take 2,800 sentences with a noun between, and hide each verb:
"""

# %% tags=["trained"]
given = masked.probed()  # words, and the places of subject and verb
weights = masked.looks(bert, given)  # the gap's rows: (layers, heads, sentences, n)
on_subject = (weights.argmax(-1) == given.subject).float().mean(-1)
bert_figures.looks(on_subject, masked.best_offset())

# %% tags=["proof"]
assert quick() or on_subject[1, 1] > 0.95

# %% [markdown]
r"""
Nearly always this head's largest weight lies on the subject, in the other heads hardly ever. The line: always looking one best distance back hits 0.31. So this head follows the subject.
"""

# %%
predict("blind_one_head")

# %% [markdown] tags=["exercise:hidden_from_gap"]
# Forbid one look: the gap (query) may not see the subject (key). As everywhere, True = may look.

# %% [markdown]
r"""
`changed` gives one head such a mask, beyond the padding's. `agrees` gives 1 where the verb's true form is likelier than its other form. Control: hide from it the **word behind** the subject (here *to*). That can fail: this word may have looked at the subject one layer below, and carry its number.
"""

# %% tags=["trained"]
one_look = yours("hidden_from_gap")
misled = carried.misled()  # 404 misleading sentences with hidden verbs
n = misled.words.shape[1]


def right_verbs():
    return masked.agrees(masked.at_verb(bert, misled), misled).mean().item()


changes = {
    "head 0:\nsubject": (0, misled.subject),
    "head 1:\nword behind": (1, misled.subject + 1),
    "head 1:\nsubject": (1, misled.subject),
}
shares = {"as it is": right_verbs()}
for name, (head, key) in changes.items():
    mask = to_device(one_look(misled.verb, key, n))
    with model_of.changed(bert, layer=1, head=head, mask=mask):
        shares[name] = right_verbs()
*unharmed, blinded = shares.values()
bert_figures.blinded(shares)

# %% tags=["proof"]
assert quick() or (min(unharmed) > 0.95 and blinded < 0.2)

# %% [markdown]
r"""
The first three bars agree: nothing is lost. Hide the subject from head 1: about one verb in ten stays right, fewer than a coin gets, since the model believes the misleading nouns. Here the look is the cause.

## 4 · Two more seeds

**"Now we know how a BERT finds the subject."** That was seed 0. Seed 2 has other first weights and batches, and is right in 0.999 of the misleading sentences:
"""

# %%
bert_figures.stored_looks(2)

# %% [markdown]
r"""
Here no head tracks the subject: always looking one fixed distance back (0.31) beats the best (‹0.28›).
"""

# %%
predict("third_seed")

# %%
bert_figures.stored_blinded(2)

# %% [markdown]
r"""
The last plain bar, with the subject hidden in all four heads, has 0.95: the gap hardly needs it. **"A head in which the gap ignores the subject does not matter."** Hatched bars: the word behind may not see the subject. In layer 0, head 1 it puts 0.88 of its weight there. Forbid this one look, and nearly half of the verbs are lost.

A guess: the word behind takes the number from the subject, and in layer 1, head 1 the gap reads it there. Then without both the gap should be lost. Control: the word after these two.
"""

# %%
bert_figures.stored_unread()

# %% [markdown]
r"""
The guess holds in two seeds. In this head of seed 2, 0.96 stay right without the subject, 0.68 without the word behind, 0.08 without both. Seed 1 uses both words, too. The control costs nothing. Seed 0 never uses the word behind.

**A map is a lead; an intervention is a test.**

## In real work

Encoders find, rank and classify texts. There the target −100 marks a place that is not chosen: torch's cross-entropy skips it. Without it most of the loss asks for visible words, and teaches copying.

## The keys once more

Blind the one head in our sentence, then in one that you type:
"""


# %%
def without_the_look(sentence, subject):
    words = sentence.split()
    gap, key = torch.tensor([words.index("[mask]")]), torch.tensor([subject])
    mask = to_device(one_look(gap, key, len(words)))
    with model_of.changed(bert, layer=1, head=1, mask=mask):
        return [guess.word for guess in model_of.fill(bert, sentence, top=4)]


blind = without_the_look(sentence, subject=1)

# %% tags=["proof"]
assert quick() or not plural & set(blind)

# %% tags=["nbval-ignore-output"]
mine, place = "our sailors behind my lamp [mask] quiet", 1  # of its subject
print(*blind, "|", *without_the_look(mine, place))

# %% [markdown]
r"""
Before the bar all are singular: now the cabinet decides.

**To remember.** An encoder learns from hidden words.

- 15 % are chosen, most become `[mask]`; the loss asks at all chosen places.
- Blind one head to one word, with a control that could fail.
- Another seed solves the task another way, through another word.

**Sources.** Devlin et al. 2018 (arXiv:1810.04805); Linzen et al. 2016 (arXiv:1611.01368); Jain & Wallace 2019, *Attention is not Explanation* (arXiv:1902.10186). Seeds, claims: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06e · GPT](06e_gpt.ipynb): what does the decoder alone learn?
"""

# %% [markdown]
r"""
# 06d · What does the encoder alone learn?

*The keys to the cabinet [mask] old.* Is *is* hidden, or *are*? You looked at *keys*; the nearer *cabinet* did not fool you. Can a model learn that if nobody tells it what a subject is?

**Afterwards you can** turn any text into questions; train an encoder on them; test whether a head that looks right matters.

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

Our sentences are generated. A verb has the **number** of its **subject**, singular or plural (*the key is*, *the keys are*). Other nouns stand between or in front:
"""

# %%
drawn = agreement.draw(torch.Generator().manual_seed(0), count=2, split="test")
for words, length in zip(drawn.words, drawn.lengths, strict=True):
    print(agreement.text(words[:length]))
for rule, share in agreement.rules(masked.sentences("test")).items():
    print(f"{share:.2f} {rule}")

# %% [markdown]
r"""
In the first sentence the *keys need*. The first noun has the verb's number in 0.80 of 4,000 sentences, more than nearest noun, most nouns or a coin. A sentence is **misleading** where all other nouns before the verb have the wrong number.

## 2 · Hide words and ask

A **masked language model** guesses hidden words from *both* sides. BERT chooses 15 % of the words. Of these, 80 % become `[mask]`, 10 % a random word, and 10 % stay. The model must guess all that are chosen. It cannot tell which visible words were, so it must have an opinion on each.
"""

# %%
predict("how_many_masks")

# %% [markdown] tags=["exercise:hide_words"]
# A batch has $b$ sentences of $n$ words; `fate` is a random number from 0 to 1 at each place. Write what the model sees.

# %%
batch = model_of.hide(drawn.words, drawn.lengths, torch.Generator().manual_seed(1))
for seen, chosen, length in zip(batch.seen, batch.chosen, batch.lengths, strict=True):
    places = chosen.nonzero()[:, 0].tolist()
    print(agreement.text(seen[:length]), "|", *places)

# %% [markdown]
r"""
Behind the bar: the chosen places, from 0; place 4, *keys*, became a random word. `hide` draws them and the fates.

The model gives logits (b, n, 74), a score for each of 74 words at each place. The loss is the cross-entropy of 06b at the chosen places alone.
"""

# %% [markdown] tags=["exercise:hidden_loss"]
# Write the loss.

# %% [markdown]
r"""
The model: two layers of 06a, two heads each, learned positions. Only padding is hidden; no mask is causal:
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
for guess in model_of.fill(bert, sentence, top=4):  # likeliest words
    print(f"{guess.word:6} {guess.probability:.2f}")

# %%
plural = {plural for _, plural in agreement.VERBS}
likely = {guess.word for guess in model_of.fill(bert, sentence, top=4)}
assert quick() or likely < plural
bert_figures.by_nouns_between()

# %% [markdown]
r"""
All four are plural, each near a quarter: four verbs may stand before *old*. In the figure BERT is right in 0.98 or more even behind three misleading nouns, the count in 0.26 or less.

## 3 · Who found the subject?

Layers and heads count from 0. The **gap** is the place of `[mask]`. Where does it look?
"""

# %%
looked = model_of.maps(bert, sentence)  # the weights of all heads
bert_figures.gap(looked.words, looked.weights)

# %% [markdown]
r"""
In layer 1, head 1 nearly all weight lies on *keys*; the other heads prefer *old* or *cabinet*. Take 2,800 sentences with a noun between, and hide each verb:
"""

# %%
given = masked.probed()  # words, and the places of subject and verb
weights = masked.looks(bert, given)  # the gap's rows: (layers, heads, sentences, n)
on_subject = (weights.argmax(-1) == given.subject).float().mean(-1)
assert quick() or on_subject[1, 1] > 0.95
bert_figures.looks(on_subject, masked.best_offset())  # the best distance

# %% [markdown]
r"""
In over 99 of 100 this head's largest weight lies on the subject, in the other heads never. One fixed distance reaches 0.31.
"""

# %%
predict("blind_one_head")

# %% [markdown] tags=["exercise:hidden_from_gap"]
# Forbid one look: the gap (query) may not see the subject (key).

# %% [markdown]
r"""
`changed` makes one head obey such a table. `agrees` gives 1 where the verb's true form is likelier than its other form.
"""

# %%
misled = given.take(given.misleading.nonzero()[::2, 0])  # 404 sentences
subject = to_device(masked.blind(misled, "verb"))  # hidden from the gap
before_gap = to_device(masked.blind(misled, "control"))  # another word hidden


def right_verbs():
    return masked.agrees(masked.at_verb(bert, misled), misled).mean().item()


changes = {
    "head 1: word\nbefore the gap": (1, before_gap),
    "head 0:\nsubject": (0, subject),
    "head 1:\nsubject": (1, subject),
}
shares = {"as it is": right_verbs()}
for name, (head, table) in changes.items():
    with model_of.changed(bert, layer=1, head=head, blind=table):
        shares[name] = right_verbs()
*unharmed, blinded = shares.values()
assert quick() or (min(unharmed) > 0.95 and blinded < 0.2)
bert_figures.blinded(shares)

# %% [markdown]
r"""
Hide another word from head 1, or the subject from head 0: nothing is lost. Hide the subject from head 1: about 9 of 100 verbs stay right, fewer than a coin gets, since the model believes the misleading nouns. Here the look is the cause.

## 4 · Two more seeds

**"Now we know how a BERT finds the subject."** That was seed 0. Seed 1 has other first weights and batches, and gets 0.996 of the misleading verbs right.
"""

# %%
bert_figures.stored_looks(1)

# %% [markdown]
r"""
Again head 1, but in 0.49 of the sentences only.
"""

# %%
predict("second_seed")

# %%
bert_figures.stored_blinded(1)

# %% [markdown]
r"""
Blue: layer 1, head 1 falls to 0.65 (all heads: 0.60); the others lose nothing. Hatched: a *second* way. In layer 0, head 0 the word right behind the subject (*to* in our sentence) looks back at it. Forbid that look, and 0.66 stay right.

Seed 2 gets 0.999:
"""

# %%
bert_figures.stored_looks(2)

# %% [markdown]
r"""
Its best head, 0.28, hits the subject less often than a fixed distance.
"""

# %%
predict("third_seed")

# %%
bert_figures.stored_blinded(2)

# %% [markdown]
r"""
The last blue bar has 0.95: the gap need not see the subject at all. **"A head in which the gap ignores the subject does not matter."** In layer 0, head 1 the word behind the subject puts 0.88 of its weight on it. Forbid this one look, and 0.51 stay right, a coin's half. So the word behind (in our sentence *to*) reads the number off the subject, and in layer 1 the gap reads it there. No map of the gap's row shows that.

**A map is a lead; an intervention is a test.**

## In real work

Encoders find, rank and classify texts: ModernBERT, E5. torch's loss skips targets of −100:
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
The bug that people meet: without −100 the loss also asks for visible words and padding. Trained so, a model is mostly asked to copy.

## The keys once more

Blind the one head in our sentence:
"""

# %%
table = torch.zeros(1, 7, 7, dtype=torch.bool)
table[0, 5, 1] = True  # the gap is word 5, keys is word 1
with model_of.changed(bert, layer=1, head=1, blind=to_device(table)):
    blind = {guess.word for guess in model_of.fill(bert, sentence, top=4)}
assert quick() or not blind & plural

# %% tags=["nbval-ignore-output"]
print(*sorted(blind))

# %% [markdown]
r"""
All singular: now the cabinet decides.

**To remember.** An encoder learns from hidden words; a map is a lead, and an intervention is a test.

- 15 % chosen, 80 % of them `[mask]`; the loss asks there alone.
- Blind one head to one word, with a control.
- Another seed solves the same task another way.
- A number can travel through other words.

**Sources.** Devlin et al. 2018 (arXiv:1810.04805); Linzen et al. 2016 (arXiv:1611.01368); Jain & Wallace 2019, *Attention is not Explanation* (arXiv:1902.10186); Warner et al. 2024, ModernBERT (arXiv:2412.13663). Seeds, claims: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06e · GPT](06e_gpt.ipynb): what does the decoder alone learn?
"""

# /// ideas
# [misleading]
# says = "a misleading sentence: all nouns before the verb but its subject have the wrong number; simple rules fail"
# motive = "The nearer *cabinet* did not fool you"
# shown = "agreement.rules("
# action = 'predict("two_neighbours")'
#
# [masked_language_model]
# says = "a masked language model says hidden words from both sides; no label is needed"
# motive = "nobody tells it what a subject is"
# shown = "model_of.fill(bert, sentence"
# action = "model_of.fill(bert, mine"
#
# [fifteen]
# says = "15 % of the words are chosen; 80 % of these become [mask], 10 % another word, 10 % stay; all that are chosen are asked for"
# motive = "Later texts have no [mask]"
# shown = "hide(words, chosen, fate, other)"
# action = 'predict("how_many_masks")'
#
# [loss_at_chosen]
# says = "the loss asks at the chosen positions alone"
# motive = "visible words would only be copied"
# shown = "logits are compared"
# action = "Write the loss"
#
# [padding_alone]
# says = "the encoder alone: the layers of 06a under a mask that hides padding and nothing else"
# motive = "Which mask does it need"
# shown = "def masked_logits"
# action = "fit(bert"
#
# [on_many]
# says = "from one map to many sentences: how often a head's largest weight lies on the subject, against the best fixed distance"
# motive = "One sentence is no evidence"
# shown = "on_subject ="
# action = "bert_figures.looks("
#
# [forbid]
# says = "an intervention: forbid one look in one head, and count the right answers again; another word is hidden as a control"
# motive = "Does this look matter"
# shown = "bert_figures.blinded(shares)"
# action = 'predict("blind_one_head")'
#
# [another_run]
# says = "another seed solves the task by another route: the number travels through the next word"
# motive = "That was one model"
# shown = "travels.routes()"
# action = 'predict("third_seed")'
#
# [lead]
# says = "a map is a lead, an intervention is a test"
# motive = "could be a suspect"
# shown = "A map is a lead"
# action = "one_look(misled"
#
# [ignored]
# says = "the target -100 marks positions that torch's cross-entropy skips; without it the loss looks better than the model is"
# motive = "if somebody forgets this"
# shown = "-100"
# action = "masked_fill(~chosen"
# ///

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

# %% tags=["imports"]
import math

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.chapters.c06_transformer import agreement, bert_figures
from lesson_lib.chapters.c06_transformer import bert as model_of
from lesson_lib.chapters.c06_transformer.agreement import MASK
from lesson_lib.chapters.c06_transformer.experiments import bert as masked
from lesson_lib.chapters.c06_transformer.experiments import carried as travels
from lesson_lib.course import *
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

Our sentences are generated, so we know their grammar. A verb has the **number** of its **subject**, singular or plural (*the key is*, *the keys are*). Other nouns stand around:
"""

# %%
drawn = agreement.draw(torch.Generator().manual_seed(0), count=2, split="test")
for words, n, subject in zip(drawn.words, drawn.lengths, drawn.subject, strict=True):
    noun = agreement.text(words[subject : subject + 1])
    print(f"{agreement.text(words[:n])}   (subject: {noun}, word {subject} from 0)")
rules = agreement.rules(masked.sentences("test"))  # of 4,000 sentences
for rule in ("nearest noun", "first noun"):
    print(f"right by the {rule}: {rules[rule]:.2f}")

# %% [markdown]
r"""
Two simple rules take the verb's number from the nearest noun before it, or from the first noun of the sentence. In the first sentence the first noun, *letter*, is wrong; in the second both are, *woman* and *horse*. Even the better rule is wrong in one of five. A sentence is **misleading** if nouns stand between subject and verb, and every noun before the verb but the subject has the wrong number. (No test sentence is used in training.)

## 2 · Hide words and ask

A **masked language model** predicts hidden words from the words on *both* sides. So the text is its own answer key. The best known is BERT (2018). It chooses 15 % of the words at random. Of these, ‹80› % become `[mask]`, 10 % another word, and 10 % stay. (`[mask]` is a word of the vocabulary, number `MASK`; the masks of attention are something else.) Later texts have no [mask] in them, and a model that works at `[mask]` alone would be of no use there. So it is also asked for chosen words that are visible, some right and some wrong, and is not told which these are.
"""

# %%
predict("how_many_masks")

# %% [markdown] tags=["exercise:hide_words"]
# Write what the model sees, for a batch (b, n). `chosen` says which words are chosen. `fate` is a random number from 0 to 1 for each word: below 0.8 a chosen word becomes `MASK`, from 0.8 to 0.9 it becomes that of `other`, which holds a random word for each position, and from 0.9 on it stays.

# %%
hide = yours("hide_words")


def questions(words, lengths, generator):
    """What the model sees, the lengths, the true words, and which are chosen."""
    # drawn: 15 % of the real words are chosen, one at least, and never padding
    chosen, fate, other = model_of.fates(words, lengths, generator)
    return hide(words, chosen, fate, other), lengths, words, chosen


generator = torch.Generator().manual_seed(1)
for seen, n, _, chosen in zip(*questions(drawn.words, drawn.lengths, generator), strict=True):
    print(agreement.text(seen[:n]), "| chosen:", *chosen.nonzero()[:, 0].tolist())

# %% [markdown]
r"""
In the first sentence word 4, *keys*, became a random word; the other chosen words became `[mask]`.

The model will give logits (b, n, 74) for the 74 entries of its vocabulary. A word that was not chosen stands in the input: visible words would only be copied. So logits are compared with the true words at the chosen positions alone.
"""

# %% [markdown] tags=["exercise:hidden_loss"]
# Write the loss: the mean cross-entropy at the chosen positions.

# %% [markdown]
r"""
The model is a small BERT: embeddings with a learned code for each position, two pre-norm layers of 06a with two heads, and logits from the table of embeddings, with a learned number added for each word. Which mask does it need? Words on both sides may help. So, unlike 06b's decoder, it has no causal mask, and only padding is masked. `fit` is 06b's loop: it draws a batch, takes the loss, and steps Adam.
"""


# %%
def masked_logits(bert, seen, lengths):
    """At each position, the logits of all words: (b, n, 74)."""
    x = bert.embedding(seen)  # (b, n, 48)
    for layer in bert.encoder.layers:
        x = layer(x, mask=padding(lengths, seen.shape[1])).output
    return bert.embedding.logits(bert.encoder.norm(x)) + bert.bias  # a number for each word


loss_at = yours("hidden_loss")


def draw(generator):
    return questions(*masked.some(generator), generator)  # 64 sentences


def loss(bert, batch):
    seen, lengths, words, chosen = batch
    return loss_at(masked_logits(bert, seen, lengths), words, chosen)


_ = torch.manual_seed(0)
bert = to_device(masked.make())  # untrained
# ten losses, each the mean of 180 batches
losses = fit(bert, draw, loss, steps=1800, lr=1e-2).column("loss")

# %% tags=["proof"]
assert quick() or (3 < losses[0] < math.log(74) and losses[-1] < 2)

# %% tags=["nbval-ignore-output"]
print("losses:", *(f"{mean:.2f}" for mean in losses))
sentence = "the keys to the cabinet [mask] old"
for word, p in model_of.fill(bert, sentence, top=4):  # the likeliest words
    print(f"{word:6} {p:.2f}")

# %% tags=["proof"]
plural = {plural for _, plural in agreement.VERBS}
likely = {word for word, _ in model_of.fill(bert, sentence, top=4)}
assert quick() or likely < plural

# %% [markdown]
r"""
Whoever knows nothing pays ln 74 = 4.30. The loss falls from «3.4» to «1.8» and never to 0, since nobody can know which noun was hidden. And in our sentence? All four words are plural, each near a quarter, and only these four fit before *old*. From now on a verb counts as **right** if its true form gets more probability than its other form (*are* against *is*). The picture has misleading sentences alone:
"""

# %%
bert_figures.by_nouns_between()

# %% [markdown]
r"""
Even after three misleading nouns BERT is right in at least 0.98 of the sentences; the count of neighbours from the opening is mostly wrong.

## 3 · Who found the subject?

Where does the masked position look? Layers and heads count from 0:
"""

# %% tags=["trained"]
looked = model_of.maps(bert, sentence)  # the weights of all heads
bert_figures.gap(looked.words, looked.weights)

# %% [markdown]
r"""
In layer 1, head 1 nearly all the weight of the masked position lies on *keys*; the other heads prefer *old* or *cabinet*. One sentence is no evidence. So take 2,800 sentences with a noun between subject and verb, hide each verb, and count how often the largest weight of a head lies on the subject:
"""

# %% tags=["trained"]
given = masked.probed()  # words, and the positions of subject and verb
weights = masked.looks(bert, given)  # from the verb: (layers, heads, sentences, n)
on_subject = (weights.argmax(-1) == given.subject).float().mean(-1)
bert_figures.looks(on_subject, masked.best_offset())

# %% tags=["proof"]
assert quick() or on_subject[1, 1] > 0.95

# %% [markdown]
r"""
In layer 1, head 1 it does so in nearly every sentence, in the others hardly ever. The line is a comparison: a head that always looked k words back would hit the subject in ‹0.31› of the sentences at the best k. So this head follows the subject. Does this look matter for the verb?
"""

# %%
predict("blind_one_head")

# %% [markdown] tags=["exercise:hidden_from_gap"]
# Forbid one look: write the mask (b, n, n) for b sentences of n words. In sentence i, the query at `gap[i]`, the masked position, may not see the key at `subject[i]`. True = may look.

# %% [markdown]
r"""
Inside `with model_of.changed(...)` one head of one layer gets your mask, in addition to the padding mask. We also need a **control**: in the same head, hide another word, the one after the subject (in our sentence *to*). A control must be able to fail. This one can: in layer 0 that word may have looked at the subject, and then it carries the subject's number.
"""

# %% tags=["trained"]
one_look = yours("hidden_from_gap")
misled = travels.misled()  # 404 misleading sentences with hidden verbs


def right_verbs():
    logits = masked.at_verb(bert, misled)  # at the masked position: (404, 74)
    return masked.agrees(logits, misled).mean().item()  # true form against other form


shares = {"as it is": right_verbs()}
for name, key in {"next word": misled.subject + 1, "subject": misled.subject}.items():
    mask = to_device(one_look(misled.verb, key, misled.words.shape[1]))
    with model_of.changed(bert, layer=1, head=1, mask=mask):
        shares[f"without the\n{name}"] = right_verbs()
bert_figures.blinded(shares)

# %% tags=["proof"]
*unharmed, blinded = shares.values()
assert quick() or (min(unharmed) > 0.95 and blinded < 0.2)

# %% [markdown]
r"""
Without the next word nothing is lost. Without the subject about one verb in ten stays right. That is fewer than a coin gets, because the model believes the misleading nouns. So here the look is the cause. And in our sentence?
"""


# %%
def without_the_look(sentence, subject):
    """The likeliest words when this one look is forbidden."""
    words = sentence.split()
    gap, key = torch.tensor([words.index("[mask]")]), torch.tensor([subject])
    mask = to_device(one_look(gap, key, len(words)))
    with model_of.changed(bert, layer=1, head=1, mask=mask):
        return [word for word, _ in model_of.fill(bert, sentence, top=4)]


blind = without_the_look(sentence, subject=1)

# %% tags=["proof"]
assert quick() or not plural & set(blind)

# %% tags=["nbval-ignore-output"]
mine, place = "our sailors behind my lamp [mask] quiet", 1  # the position of its subject
print("the keys, without the look:", *blind)
print("mine, without the look:    ", *without_the_look(mine, place))
print("mine, with it:             ", *(w for w, _ in model_of.fill(bert, mine, top=4)))

# %% [markdown]
r"""
Without the look all answers are singular: now *cabinet* and *lamp* decide. With it all are plural. *Do:* change `mine` and `place`, and find a sentence whose answers stay right without the look. (`agreement.VOCABULARY` has the words.)

## 4 · Two more runs

**"Now we know how a BERT finds the subject."** That was one model; call it run 0. Runs 1 and 2 have the same sentences and steps, but other first weights and batches, and are as good. Here is how often the largest weight lies on the subject in run 2:
"""

# %%
bert_figures.stored_looks(2)

# %% [markdown]
r"""
No head follows the subject: the best does so less often than the best fixed distance. And indeed, hide the subject from the masked position in all four heads, and ‹0.95› of the misleading verbs stay right. So where does the number come from? Our control, the next word, could be a suspect.
"""

# %%
predict("third_seed")

# %%
print("hidden from the masked position    run 0 run 1 run 2")  # in all four heads, stored
for hidden, shares in travels.routes().items():
    print(f"{hidden:34}", *(f"{share:5.2f}" for share in shares.values()))

# %% [markdown]
r"""
These are shares of right verbs in the misleading sentences. The last line is a new control, the second word after the subject (*the* in our sentence): it costs nothing.

- Run 0 has one route. Without the subject «0.10» stay right, and the next word does not matter.
- Run 2 has two. Without the subject «0.95» stay right, without the next word «0.69», and without both «0.07». So with the subject hidden the next word nearly always suffices; with the next word hidden the subject suffices in two of three sentences.
- Run 1 has the same two, «0.60» and «0.73». Without both «0.24» stay right, more than in the other runs, by a way that we have not found.

How does the next word know the number? Hide the subject from the next word, too: run 2 falls from «0.95» to «0.14», run 1 from «0.60» to «0.19». There are only two layers, and in layer 1 the masked position reads what left layer 0. So *to* must have looked at *keys* in layer 0:

```
layer 0    keys <--- to        "to" looks at "keys"
layer 1    to <--- [mask]      [mask] looks at "to"
```

**"The map of run 2 hardly shows a look at the subject, so this look does not matter."** It does: with the next word hidden, it alone keeps «0.69» right, against «0.07» without it. A weight need not be the largest to carry a number. And where one thing can replace another, hiding one can look harmless. So hide each, and then both.

**A map is a lead; an intervention is a test.**

## In real work

Many training scripts do not cut out the chosen positions. They give the loss a target for every position, and write −100 where no word was chosen: torch's cross-entropy skips it. What does the loss say of our model if somebody forgets this?
"""

# %% tags=["trained"]
seen, lengths, words, chosen = to_device(draw(torch.Generator().manual_seed(7)))
with torch.no_grad():
    logits = masked_logits(bert, seen, lengths)
each = logits.mT  # torch wants the 74 on axis 1
right = F.cross_entropy(each, words.masked_fill(~chosen, -100))
assert_close(right, loss_at(logits, words, chosen))
wrong = F.cross_entropy(each, words.masked_fill(words == 0, -100))  # 0: padding

# %% tags=["nbval-ignore-output"]
print(f"with -100: {right:.2f}; without: {wrong:.2f}")

# %% tags=["proof"]
assert quick() or abs(wrong - right) > 0.2

# %% [markdown]
r"""
With −100 it is the loss that you wrote, on one batch. Without, it is a third of that, and looks better than the model is: at most positions the answer stands in the input. (These are not quite free, since a visible word may be a wrong one. Padding is left out of both.)

A model trained on hidden words is a start for other tasks: put a small read-out on its rows, and train on with a few labelled texts. This is called **fine-tuning**.

**To remember.** An encoder learns from hidden words, without a label.

- 15 % are chosen, most become `[mask]`; the loss asks at all chosen positions.
- Blind one head to one word, with a control that could fail.
- Another run may take another route, through another word. Hide each suspect alone, then both.

**Sources.** Devlin et al. 2018 (arXiv:1810.04805); Linzen et al. 2016 (arXiv:1611.01368); Jain & Wallace 2019, *Attention is not Explanation* (arXiv:1902.10186). Seeds, claims: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06e · GPT](06e_gpt.ipynb): what does the decoder alone learn?
"""

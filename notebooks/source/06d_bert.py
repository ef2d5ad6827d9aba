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
# shown = "next word"
# action = 'predict("third_seed")'
#
# [lead]
# says = "a map is a lead, an intervention is a test"
# motive = "what would its maps have told us"
# shown = "A map is a lead"
# action = "one_look(misled"
#
# [ignored]
# says = "the target -100 marks positions that torch's cross-entropy skips; without it the loss looks better than the model is"
# motive = "they never cut out the chosen positions"
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
    print(f"{agreement.text(words[:n])}   (subject: word {subject})")
for rule, share in agreement.rules(masked.sentences("test")).items():
    print(f"{share:.2f} {rule}")

# %% [markdown]
r"""
Words count from 0. The shares say how often a rule names the right number of the verb, in 4,000 sentences. The best rule, "trust the first noun", is wrong in one of five. A sentence is **misleading** where all nouns before the verb, but for the subject, have the wrong number.

## 2 · Hide words and ask

A **masked language model** says hidden words from *both* sides. The best known is BERT (2018). It chooses 15 % of the words at random. Of these, ‹80› % become `[mask]`, 10 % another word, and 10 % stay. (`[mask]` is a word of the vocabulary, number `MASK`; the masks of attention are something else.) Later texts have no [mask] in them. So the model must not learn to work at `[mask]` alone: it has to say all words that were chosen, and is not told which of the visible ones were.
"""

# %%
predict("how_many_masks")

# %% [markdown] tags=["exercise:hide_words"]
# Write what the model sees, for a batch (b, n). `chosen` says which words are chosen. `fate` is a random number from 0 to 1 for each word: below 0.8 a chosen word becomes `MASK`, from 0.8 to 0.9 the word of `other`, and from 0.9 on it stays.

# %%
hide = yours("hide_words")


def questions(words, lengths, generator):
    """What the model sees, the lengths, the true words, and which are chosen."""
    chosen, fate, other = model_of.fates(words, lengths, generator)  # drawn
    return hide(words, chosen, fate, other), lengths, words, chosen


generator = torch.Generator().manual_seed(1)
for seen, n, _, chosen in zip(*questions(drawn.words, drawn.lengths, generator), strict=True):
    print(agreement.text(seen[:n]), "| chosen:", *chosen.nonzero()[:, 0].tolist())

# %% [markdown]
r"""
In the first sentence word 4, *keys*, became a random word; the other chosen words became `[mask]`.

The model will give logits (b, n, 74) for the 74 words of this language. Where a word was not chosen, its true word stands in the input, and visible words would only be copied. So logits are compared with the true words at the chosen positions alone.
"""

# %% [markdown] tags=["exercise:hidden_loss"]
# Write the loss: the mean cross-entropy at the chosen positions.

# %% [markdown]
r"""
The model is a small BERT: embeddings with a learned code for each position, two pre-norm layers of 06a with two heads, and logits from the table of embeddings. Which mask does it need? A hidden word may be asked from both sides, so only padding is hidden:
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
losses = fit(bert, draw, loss, steps=1800, lr=1e-2).column("loss")  # 06b's loop

# %% tags=["proof"]
assert quick() or (3 < losses[0] < math.log(74) and losses[-1] < 2)

# %% tags=["nbval-ignore-output"]
print(*(f"{mean:.2f}" for mean in losses))  # of 180 batches each

# %% [markdown]
r"""
Whoever knows nothing pays ln 74 = 4.30. The loss falls from «3.4» to «1.8» and never to 0, since nobody can know which noun was hidden. And our sentence?
"""

# %% tags=["nbval-ignore-output"]
sentence = "the keys to the cabinet [mask] old"
for word, p in model_of.fill(bert, sentence, top=4):  # the likeliest words
    print(f"{word:6} {p:.2f}")

# %%
plural = {plural for _, plural in agreement.VERBS}
likely = {word for word, _ in model_of.fill(bert, sentence, top=4)}
bert_figures.by_nouns_between()

# %% tags=["proof"]
assert quick() or likely < plural

# %% [markdown]
r"""
*Are*, *were*, *seem*, *look*: all four are plural, each near a quarter, and only these four fit before *old*. The picture has misleading sentences alone. BERT is right in 0.98 or more even after three misleading nouns, and the count of the opening mostly wrong.

## 3 · Who found the subject?

Where does the masked position look? Layers and heads count from 0:
"""

# %% tags=["trained"]
looked = model_of.maps(bert, sentence)  # the weights of all heads
bert_figures.gap(looked.words, looked.weights)

# %% [markdown]
r"""
In layer 1, head 1 nearly all its weight lies on *keys*; the other heads prefer *old* or *cabinet*. One sentence is no evidence. So take 2,800 sentences with a noun between subject and verb, hide each verb, and count how often the largest weight of a head lies on the subject:
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
In this head it does so in nearly every sentence, in the others hardly ever. The line is a comparison: a head that always looks the same number of words back, the best number, would hit ‹0.31›. So this head follows the subject. Does this look matter for the verb?
"""

# %%
predict("blind_one_head")

# %% [markdown] tags=["exercise:hidden_from_gap"]
# Forbid one look. In sentence i, the query at position `gap[i]` may not see the key at `subject[i]`. True = may look.

# %% [markdown]
r"""
Inside `with model_of.changed(...)` one head of one layer gets your mask, in addition to the padding mask. We also need a **control**: in the same head, hide another word, the one after the subject (in our sentence *to*). A control must be able to fail. This one can: in layer 0 that word may have looked at the subject, and carry its number.
"""

# %% tags=["trained"]
one_look = yours("hidden_from_gap")
misled = travels.misled()  # 404 misleading sentences with hidden verbs


def right_verbs():
    """How often the verb's true form is likelier than its other form."""
    logits = masked.at_verb(bert, misled)  # at the masked position: (404, 74)
    return masked.agrees(logits, misled).mean().item()


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
print("the cabinet:", *blind)
print("the lamp:   ", *without_the_look(mine, place))
print("with it:    ", *(word for word, _ in model_of.fill(bert, mine, top=4)))

# %% [markdown]
r"""
All are singular: now the cabinet decides, and the lamp. With the look all are plural. *Do:* change `mine`; `agreement.VOCABULARY` has the words.

## 4 · Two more runs

**"Now we know how a BERT finds the subject."** That was one model. Runs 1 and 2 have the same sentences and steps, but other first weights and batches, and are as good. In run 2 no head follows the subject: the best has its largest weight there in ‹0.28› of the sentences, and the best fixed distance hits ‹0.31›.
"""

# %%
predict("third_seed")

# %%
print("right verbs, hidden from the masked position (stored):")
print("       subject   next word   both   a third word")
for run, hidden in travels.routes().items():  # in all four heads
    subject, behind, control, both = (
        hidden[name] for name in ("subject", "behind", "control", "subject and behind")
    )
    print(f"run {run}     {subject:.2f}        {behind:.2f}   {both:.2f}           {control:.2f}")

# %% [markdown]
r"""
Read row by row. In run 2 the masked position hardly needs to see the subject. But hide the subject *and* the next word, and nearly all is lost. So the number has taken a detour of two steps: in layer 0 the next word looks at the subject ([evidence](evidence/06_transformer_evidence.ipynb)), and in layer 1 the masked position reads it there.

Run 0 never took this way, and run 1 uses both. Three runs, three routes to the same answers: if run 2 had been our first, what would its maps have told us? That no head cares for the subject. **"A head that does not look at the subject does not need it."** It heard of it from another word.

**A map is a lead; an intervention is a test.**

## In real work

Training scripts give the loss a target for every position, and they never cut out the chosen positions. They write the target −100 where a word was not chosen: torch's cross-entropy skips it.
"""

# %% tags=["trained"]
seen, lengths, words, chosen = to_device(draw(torch.Generator().manual_seed(7)))
with torch.no_grad():
    logits = masked_logits(bert, seen, lengths)
right = F.cross_entropy(logits.mT, words.masked_fill(~chosen, -100))
assert_close(right, loss_at(logits, words, chosen))
wrong = F.cross_entropy(logits.mT, words)

# %% tags=["nbval-ignore-output"]
print(f"with -100: {right:.2f}; without: {wrong:.2f}")

# %% tags=["proof"]
assert quick() or abs(wrong - right) > 0.2

# %% [markdown]
r"""
With −100 it is the loss that you wrote. Without, it is less than half as large, and looks better than the model is: at most positions the answer stands in the input.

**To remember.** An encoder learns from hidden words, without a label.

- 15 % are chosen, most become `[mask]`; the loss asks at all chosen positions.
- Blind one head to one word, with a control that could fail.
- Another seed solves the task another way, partly through another word.

**Sources.** Devlin et al. 2018 (arXiv:1810.04805); Linzen et al. 2016 (arXiv:1611.01368); Jain & Wallace 2019, *Attention is not Explanation* (arXiv:1902.10186). Seeds, claims: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06e · GPT](06e_gpt.ipynb): what does the decoder alone learn?
"""

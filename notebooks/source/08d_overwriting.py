# /// ideas
# [rule]
# says = "the delta rule: ask the state for the key first, then write what is missing: S + k (v - S^T k)^T"
# motive = "Can a state replace one number"
# shown = "60 - 10 = 50"
# action = "delta_state"
#
# [others]
# says = "entries with keys at right angles stay; else the change leaks, and no longer the whole number"
# motive = "And Ben?"
# shown = "0.6 \\cdot 50"
# action = 'predict("ann_and_ben")'
#
# [wins]
# says = "on names that are written again the delta rule is right about twice as often as the best gate"
# motive = "So who wins on the books of moves"
# shown = "delta rule:"
# action = "delta_state"
#
# [beta]
# says = "beta, made from the token, is the share that is replaced; 0 reads without writing"
# motive = "Not every token is news"
# shown = "half of the difference is made up"
# action = 'predict("half_beta")'
#
# [gate]
# says = "a gate is for the end of a subject: made from the token it helps more than a fixed one"
# motive = "What is the gate still good for"
# shown = "0 at the border"
# action = 'predict("new_book")'
#
# [corrected]
# says = "what each token really writes, u, follows from one triangular system for all tokens"
# motive = "so it must run token by token"
# shown = "(I + L)\\, U = V"
# action = "corrected"
#
# [whole]
# says = "all outputs are attention without softmax over corrected values: tril(Q K^T) U"
# motive = "Is it still attention"
# shown = "(q @ k.mT).tril() @ U"
# action = "corrected"
#
# [columns]
# says = "a gate for each column of the key lets some rows of S fade and others stay"
# motive = "One gate fades everything"
# shown = "gates[2, 0] = 0.1"
# action = "Which of the three"
#
# [rows]
# says = "d rows stay d free answers: written often enough it holds as many names as rows, and no more"
# motive = "Has the rule lifted the limit"
# shown = "times written"
# action = 'predict("written_ten_times")'
#
# [hybrid]
# says = "so models keep full attention in one layer of four"
# motive = "So a state that overwrites does not replace attention"
# shown = "three layers of it to one of full attention"
# action = 'predict("written_ten_times")'
#
# [length]
# says = "keys longer than sqrt(2 / beta) make the state explode: normalise them"
# motive = "what if keys are longer?"
# shown = "length 1.5"
# action = 'predict("long_keys")'
# ///

# %% [markdown]
r"""
{title}

Ben's number is 30. Ann's number is 10, then she moves: 60. Ask the states of 08c for both. The one that adds says 70 for Ann. The one that fades, with a gate of 0.5, says 65 for Ann and 7.5 for Ben. Can a state replace one number and leave the others alone?

**Afterwards you can** write the delta rule, with its gate, token by token and for all tokens at once; say where it wins and where full attention does; normalise its keys before its answers explode.

{about}

<details><summary>中文摘要 · Chinese</summary>
只会相加的状态记不住“搬家”:旧号码还在里面。增量规则(delta rule)先问状态“这个键现在的答案是什么”,再只写入差值,于是旧值被替换。这一课亲手写出一步,再用一个三角方程组一次算出所有词元;然后看它在哪里赢,在哪里仍输给完整的注意力。
</details>
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import phone_book
from lesson_lib.course import *
from lesson_lib.delta import attend_delta

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · Ask before you write

The state of 08c is a matrix $S$ with a row for each number of a key and a column for each number of a value. It adds $k v^\top$ for each token, and a query $q$ reads $S^\top q$. A name that is written twice is then answered with a sum.

So ask first. What does $S$ answer to the key $k$ now? That is $S^\top k$. Then write only what is missing:

$$S \leftarrow S + k\,(v - S^\top k)^\top$$

This is the **delta rule**; delta is the difference, $v - S^\top k$. By hand: Ann's key is $(1, 0)$, and $S$ answers 10 to it. Her new number is 60, so the difference is $60 - 10 = 50$. Ann's key times 50 is added, and $S$ now answers $10 + 50 = 60$.

And Ben? His key is $(0, 1)$, so 50 times Ann's key changes nothing for him. He keeps 30. Now move Ben's key to $(0.6, 0.8)$:
"""

# %%
predict("ann_and_ben")

# %%
ann, ben = torch.tensor([1.0, 0.0]), torch.tensor([0.6, 0.8])
S = torch.outer(ben, torch.tensor([30.0]))  # Ben's entry, the first
for number in (10.0, 60.0):  # Ann's two
    S = S + torch.outer(ann, torch.tensor([number]) - ann @ S)
show(Ann=ann @ S, Ben=ben @ S)

# %% [markdown]
r"""
Ann is right whatever Ben's key is, because she was written last. At her first entry $S$ answered her with Ben's leak, $0.6 \cdot 30 = 18$, so $-8$ was written: Ben had $30 - 0.6 \cdot 8 = 25.2$. Her second entry wrote 50, and $0.6 \cdot 50 = 30$ of it leaked into Ben's answer: «55.2». So the rule does not stop leaks. But what leaks is the change: where $S$ answers rightly already, nothing is written.
"""

# %% [markdown] tags=["exercise:delta_state"]
# Write the rule, with a share `beta` (n) for each token: the difference is multiplied by it. `key` (n, d_k) and `value` (n, d_v) are the tokens. Give back the last $S$.

# %% [markdown]
r"""
So who wins on the books of moves? These are 08c's: 40 books of 100 entries, each of one of eight names with a new number; keys are random, of width 32; we ask for everybody's latest number.
"""

# %%
write = yours("delta_state")
books = [phone_book.moves(names=8, who=100, seed=seed) for seed in range(40)]
ones, ago = torch.ones(100), torch.arange(99.0, -1, -1)


def latest_right(state_of, some=books):
    """The share of latest numbers that a state answers; state_of(book) is S."""
    found = asked = 0
    for book in some:
        now = phone_book.latest(book)
        found += phone_book.found(now.keys @ state_of(book), now.signs)
        asked += len(now.signs)
    return found / asked


print(f"adds: {latest_right(lambda book: book.keys.mT @ book.signs):.0%}")
fades = latest_right(lambda book: (book.keys.mT * 0.8**ago) @ book.signs)
print(f"fades, gate 0.8: {fades:.0%}")
def replaces(book):
    return write(book.keys, book.signs, ones)


print(f"delta rule: {latest_right(replaces):.0%}")
clean = [book._replace(keys=torch.eye(32)[book.who]) for book in books]
print(f"delta rule, keys at right angles: {latest_right(replaces, clean):.0%}")

# %% [markdown]
r"""
The delta rule is right in «80» % of the cases, and 0.8, 08c's best gate, in «41» %. A gate must forget everybody in order to forget Ann's old number; the delta rule forgets that number only. What it lacks is due to leaks, since with keys at right angles it has «100» %. (Softmax that is told each entry's age had ‹97› % in 08c with the random keys, but it keeps all 100 entries.)

## 2 · How much, and when to forget all

Not every token is news. So a model computes $\beta$ from the token, as a sigmoid of one number: the share of the difference that is written.

$$S \leftarrow S + \beta\, k\,(v - S^\top k)^\top$$

With 0 a token reads and writes nothing, which is right for filler. With 1 it replaces everything.
"""

# %%
predict("half_beta")

# %%
key, moved = torch.ones(3, 1), torch.tensor([[10.0], [20.0], [60.0]])
for n in (1, 2, 3):
    show(answer=write(key[:n], moved[:n], torch.full((n,), 0.5)))

# %% [markdown]
r"""
The answers are 5, «12.5» and «36.25»: each time half of the difference is made up. So $\beta$ below 1 gives a moving average, in which new numbers count more than old ones.

**"A state that overwrites needs no gate."** What is the gate still good for? Names that never come again are never replaced. The **gated delta rule** lets the state fade first: $S \leftarrow g\,S$, and then the rule. We read an old book of 40 names, then a new one of eight, each name once, and ask for the new book. One state has a gate of 0 at the border between the books. The library's `attend_delta` gives the outputs of all tokens at once (section 3 shows how); `log_gate` is the logarithm of each token's gate.
"""

# %%
predict("new_book")

# %%
gates = {"none": None, "0 at the border": "border"}
gates |= {"0.98 everywhere": 0.98, "0.8 everywhere": 0.8}
found = dict.fromkeys(gates, 0)
for seed in range(40):
    old, new = phone_book.draw(40, seed=1000 + seed), phone_book.draw(8, seed=seed)
    keys = torch.cat([old.keys, new.keys, new.keys])  # the last eight ask
    values = torch.cat([old.signs, new.signs, torch.zeros(8, 8)])
    beta = torch.cat([torch.ones(48), torch.zeros(8)])  # who asks writes nothing
    for name, gate in gates.items():
        log_gate = torch.zeros(56)  # a gate of 1
        if gate == "border":
            log_gate[40] = -50.0  # nearly 0
        elif gate:
            log_gate[:48] = torch.tensor(gate).log()
        answers = attend_delta(keys, keys, values, beta, log_gate=log_gate)[48:]
        found[name] += phone_book.found(answers, new.signs)
for name, count in found.items():
    print(f"gate {name}: {count / 320:.0%}")

# %% [markdown]
r"""
Without a gate the old entries are still in the state, and correcting what they leak leaks again. A gate of 0 at the border takes them away: «90» % are right and not «80». A fixed gate of «0.98» gains less, and with 0.8 the newest names drown the others. So a gate, like $\beta$, should be made from the token.

## 3 · All tokens at once

**"It asks the state before it writes, so it must run token by token, which training cannot afford."** But what does token $i$ write? Call it $u_i$, its **corrected value**: the state before it is $\sum_{j<i} k_j u_j^\top$, so with $\beta = 1$

$$u_i = v_i - \sum_{j < i} (k_i \cdot k_j)\, u_j$$

Ann, Ann again, with 10 and 60: $u_1 = 10$ and $u_2 = 60 - 1 \cdot 10 = 50$. All these equations together are $(I + L)\, U = V$, where $L$ holds $k_i \cdot k_j$ below the diagonal and 0 elsewhere. With $\beta$, row $i$ of $L$ and of $V$ is multiplied by $\beta_i$. A matrix with zeros above its diagonal is called **triangular**. `torch.linalg.solve_triangular(A, B, upper=False)` solves $A X = B$ for it.
"""

# %% [markdown] tags=["exercise:corrected"]
# Write it: `key` (n, d_k), `value` (n, d_v), `beta` (n). Give back $U$ (n, d_v). `x.tril(-1)` keeps what is below the diagonal.

# %% [markdown]
r"""
Is it still attention? Query $i$ reads $\sum_{j \le i} (q_i \cdot k_j)\, u_j$: scores under a causal mask, no softmax, and corrected values.
"""

# %%
solve = yours("corrected")
q, k = F.normalize(torch.randn(2, 50, 8).double(), dim=-1)
v, beta = torch.randn(50, 3).double(), torch.rand(50).double()
U = solve(k, v, beta)
output = (q @ k.mT).tril() @ U

one_by_one = torch.stack([q[i] @ write(k[: i + 1], v[: i + 1], beta[: i + 1]) for i in range(50)])
assert_close(output, one_by_one, atol=1e-12, rtol=1e-12)
assert_close(attend_delta(q, k, v, beta), output, atol=1e-12, rtol=1e-12)

# %% [markdown]
r"""
The table gives the loop's outputs to twelve digits. **The delta rule is attention without softmax over corrected values.** The library's `attend_delta` does this in chunks of 64 tokens and hands a state from chunk to chunk: a few matrix products a chunk in place of 64 small steps. With gates, each product $k_i \cdot k_j$ and $q_i \cdot k_j$ is multiplied by the gates of tokens $j + 1$ to $i$.

One gate fades everything. Kimi Linear has one for each column of the key, that is for each row of $S$. Three names have keys at right angles; when the third is written, row 0 fades to a tenth. Which of the three answers changes?
"""

# %%
keys = torch.eye(3).repeat(2, 1)  # Ann, Ben, Cy; then the three ask
values = torch.tensor([[10.0], [30.0], [20.0], [0.0], [0.0], [0.0]])
gates = torch.ones(6, 3)
gates[2, 0] = 0.1
beta = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
show(answers=attend_delta(keys, keys, values, beta, log_gate=gates.log())[3:].mT)

# %% [markdown]
r"""
Ann's alone: «1» for 10. So some rows can hold what a sentence is about, others what a book is about.

## 4 · More names than rows

Has the rule lifted the limit of 08c, $d$ free answers for $d$ rows? Write each name once, and then the whole book again and again:
"""

# %%
predict("written_ten_times")

# %%
print("names     A   delta rule, times written: 1    10")
for names in (24, 64):
    a, found = 0, {1: 0, 10: 0}
    for seed in range(20):
        _, keys, signs = phone_book.draw(names, seed=seed)
        sharp = 10 * keys  # as in 08c
        a += phone_book.found(attend(sharp, sharp, signs).output, signs) / 20
        for times in found:
            k, v = keys.repeat(times, 1), signs.repeat(times, 1)
            S = k.mT @ solve(k, v, torch.ones(len(k)))
            found[times] += phone_book.found(keys @ S, signs) / 20
    print(f"{names:5} {a:5.1f} {found[1]:29.1f} {found[10]:5.1f}")

# %% [markdown]
r"""
Written once, 24 names are too many, because later corrections leak into earlier answers. But each time it is written again less is missing, and after ten times nearly all are right: «23.7» of 24. Of 64 names it has «11.3», and written ten times hardly more. No state of 32 rows can answer 64 names as they please, so each correction spoils other answers. Full attention has all of them after one reading.

So a state that overwrites does not replace attention; the two stand together. Qwen3-Next, Qwen3.5 and OLMo Hybrid take the gated delta rule, and Kimi Linear the one with gates for columns. Most of them have three layers of it to one of full attention. We trained four small layers, with 8 rows each, on books of 48 names. Four delta layers have ‹0.27› to ‹0.33› of the names written once; with full attention as the fourth, ‹0.97› and more. (Two full layers alone do as well.)

## In real work

The keys of the phone book have length 1. But a layer makes its keys by a matrix, so what if keys are longer? **"The rule corrects itself, so nothing can go wrong."**
"""

# %%
predict("long_keys")

# %%
book = books[0]
for length in (1.0, 1.5, 2.0):
    k = length * book.keys
    largest = (k @ write(k, book.signs, ones)).abs().max()  # of all names, at the end
    print(f"keys of length {length}: largest answer {largest:.0e}")
safe = F.normalize(k, dim=-1)
assert (safe @ write(safe, book.signs, ones)).abs().max() < 3

# %% [markdown]
r"""
The values are 1 and $-1$, and with keys of length 2 an answer comes to «2e+10». By hand: writing changes the answer by $\beta\,|k|^2$ times what is missing. At length 1 and $\beta = 1$ that is all of it. At length 2 it is four times too much, so what is missing is multiplied by $1 - 4 = -3$ each time, and so are the leaks. It stays bounded while $\beta\,|k|^2$ is below 2. The repair is one line, `F.normalize(k, dim=-1)`, in front of the rule; then no answer comes above 3, and Gated DeltaNet does so, too.

## To carry away

`notebooks/carry/recurrent.py` has the rule with its gate in plain torch: `delta_step` for one token and `delta` for all of them. First the step, for a batch:
"""

# %%
from carry import recurrent as carried

show_source(carried.delta_step)

# %% [markdown]
r"""
`faded` makes the table of scores, each times the gates behind its key. A product of gates is a difference of summed logarithms; the first `tril` keeps exp from overflowing, the second hides later tokens. In `delta` the flag `unitriangular` sets the diagonal to 1, whatever stands there, and `gated` multiplies the table by values:
"""

# %%
show_source(carried.faded)

# %%
show_source(carried.delta)

# %%
book, gate, state = books[0], torch.full((100,), 0.9), torch.zeros(32, 8)
whole = carried.delta(book.keys, book.keys, book.signs, gate, ones)
for row in zip(book.keys, book.keys, book.signs, gate, ones, strict=True):
    last, state = carried.delta_step(*row, state)
assert_close(whole[-1], last, atol=1e-4, rtol=1e-4)

# %% [markdown]
r"""
On the first book of moves, with gates of 0.9, the last of a hundred steps and the whole agree. (A gate of exactly 0 has no logarithm: take a small number.)

## Ann and Ben once more

Ben's key and Ann's are at right angles again:
"""

# %%
keys = torch.eye(2)[[1, 0, 0]]  # Ben, Ann, Ann
numbers = torch.tensor([[30.0], [10.0], [60.0]])
S = write(keys, numbers, torch.ones(3))
show(Ann=S[0], Ben=S[1])

# %% [markdown]
r"""
Ann has «60», and Ben keeps «30». The state that adds said 70; the one that fades said 65 and 7.5.

**To remember.** Ask first, then write what is missing.

- The delta rule, $S + \beta\, k\,(v - S^\top k)^\top$, replaces the answer to one key; a gate in front of it ends a subject.
- For all tokens at once it is $\text{tril}(QK^\top)\, U$ with corrected values $U$, from one triangular system.
- It has no more free answers than rows, so full attention stays beside it.
- Normalise the keys.

**Sources.** Schlag et al. 2021 (arXiv:2102.11174, the rule in attention); Yang et al. 2024 (arXiv:2406.06484, all tokens at once); Yang et al. 2024 (arXiv:2412.06464, Gated DeltaNet); Kimi Team 2025 (arXiv:2510.26692, gates for columns). More: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [09](09_truncated_attention.ipynb): what if the input is long?
"""

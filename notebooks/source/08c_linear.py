# %% [markdown]
r"""
{title}

Two machines read the same phone book and are asked for everybody's number. Machine A is attention: it keeps 40 numbers for each name. Machine B keeps 256 numbers, however long the book is.
What is B, and what does it lose?

**Afterwards you can** turn attention into a recurrent network; say what its state loses; write the gate of today's recurrent models.

{about}

<details><summary>中文摘要 · Chinese</summary>
去掉 softmax,三个矩阵的乘积就可以换括号。这一课亲手把注意力写成循环网络,用一本电话簿量出它的状态丢掉什么,再给状态加上“门”,看号码会变的时候谁答得对。
</details>
"""

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import linear_figures, phone_book
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.linear import feature_map
from lesson_lib.masks import causal
from lesson_lib.measure import operations
from lesson_lib.show import show

_ = torch.manual_seed(0)
warm_up()

# %%
book = phone_book.draw(names=2, seed=0)  # keys (2, 32), signs (2, 8)
for signs in book.signs:
    print(phone_book.read(signs[None]), signs.int().tolist())
print("\nnames   A   B")
for n in (2, 4, 8, 16, 32, 64):
    _, keys, signs = phone_book.draw(names=n, seed=0)
    a = attend(10 * keys, 10 * keys, signs).output  # 10: sharp weights
    b = phone_book.machine_b(keys, keys, signs)
    print(f"{n:5} {phone_book.found(a, signs):3} {phone_book.found(b, signs):3}")

# %% [markdown]
r"""
A name is a key: a random vector of 32 numbers, of length 1. A number from 0 to 255 is a value: eight binary digits as signs. So $«183» = 128 + 32 + 16 + 4 + 2 + 1$ has $-1$ for 64 and 8. An answer is right if all eight signs are; a guess is right once in 256.

The table counts right answers: A finds all, B all of «8» names, and no more of «64».

## 1 · Move the brackets

Leave the softmax out of $\text{softmax}(QK^\top)\,V$. Three matrices remain, and their brackets can be moved:

$$(Q K^\top)\, V = Q\, (K^\top V)$$

By hand: query 2; keys 1 and 3; values 10 and 20. On the left the scores are 2 and 6, and $2 \cdot 10 + 6 \cdot 20 = 140$. On the right $1 \cdot 10 + 3 \cdot 20 = 70$, and $2 \cdot 70 = 140$.
"""

# %%
predict("brackets_save")

# %%
Q, K, V = torch.randn(3, 1000, 10).double()
assert_close((Q @ K.mT) @ V, Q @ (K.mT @ V))
print("(Q K^T) V:", f"{operations(lambda: (Q @ K.mT) @ V):,}")
print("Q (K^T V):", f"{operations(lambda: Q @ (K.mT @ V)):,}")
assert torch.equal(b, keys @ (keys.mT @ signs))  # b: machine B's answers, above

# %% [markdown]
r"""
`operations` counts the multiplications that run: a hundredth, with the same result. The last line shows what B is: it keeps $K^\top V$, $32 \times 8 = 256$ numbers.

## 2 · Token by token

$K^\top V$ is a sum with a term for each token, the **outer product** $k v^\top$: a matrix $(d_k, d_v)$ with each entry of $k$ times each of $v$. Let token $i$ see the tokens up to itself. Then the sum grows token by token:

$$S_i = S_{i-1} + k_i v_i^\top, \qquad o_i = S_i^\top q_i$$

A state that starts at 0 and is renewed by one rule is an RNN. The plain RNN of 08a took a tanh; here, as in the LSTM's cell, we add.

Is it still attention? Products $q \cdot k$ can be negative, and they do not sum to 1. Katharopoulos and others (2020) mend both. They replace each entry $x$ of queries and keys by a positive **feature** $\phi(x)$: $x + 1$ above 0, $e^x$ below. And they divide by the sum of the weights, which a second state $z$ carries:

$$z_i = z_{i-1} + \phi(k_i), \qquad o_i = \frac{S_i^\top \phi(q_i)}{z_i \cdot \phi(q_i)}$$

with $\phi(k_i)$ in place of $k_i$ in $S_i$. This is **linear attention**.
"""

# %%
predict("second_output")

# %% [markdown] tags=["exercise:by_state"]
# Write it. `query` and `key` are features already.

# %% [markdown]
r"""
In `attend` softmax takes $e$ to the power of a score. So let the score be the logarithm of $\phi(q) \cdot \phi(k)$:
"""

# %%
read = yours("by_state")  # ours, until yours has passed
q, k, v = torch.randn(3, 50, 8).double()


def log_features(query, key):
    return (feature_map(query) @ feature_map(key).mT).log()


by_table = attend(q, k, v, score=log_features, mask=causal(50)).output
assert_close(read(feature_map(q), feature_map(k), v), by_table)
assert not torch.allclose(attend(q, k, v, mask=causal(50)).output, by_table)

# %% [markdown]
r"""
The loop and `attend`'s table of $50 \times 50$ weights give the same outputs. **Without softmax, with its brackets moved, attention is an RNN.** Its state has $8 \cdot 8 + 8 = 72$ numbers, always.

**"Linear attention is softmax attention, only faster."** Let one query ask two keys, and make the query longer:
"""

# %%
one, two_keys = torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, 2.0], [0.0, 0.0]])
for times in (1, 3, 10):
    exp = attend(times * one, two_keys, two_keys).weights[0, 0]
    phi = attend(times * one, two_keys, two_keys, score=log_features).weights[0, 0]
    print(f"query times {times:2}: softmax {exp:.2f}, linear {phi:.2f}")

# %% [markdown]
r"""
These are the better key's weights. Linear attention stays at «0.75», since $\phi(2) = 3$ and $\phi(0) = 1$: this query, however long, does not make it choose more sharply.

## 3 · What the state loses

Back to machine B, without features. Ann has 10, Ben 20, Cy 30, Dora 40. Their keys are at right angles; each number is found. Then Eva comes: 60.
"""

# %%
keys = torch.eye(4)
numbers = torch.tensor([[10.0], [20.0], [30.0], [40.0]])
show(answers=(keys @ (keys.mT @ numbers)).mT)
keys = torch.cat([keys, torch.tensor([[0.5, 0.5, 0.5, 0.5]])])  # Eva, length 1
numbers = torch.cat([numbers, torch.tensor([[60.0]])])

# %%
predict("fifth_name")

# %%
show(B=(keys @ (keys.mT @ numbers)).mT, A=attend(80 * keys, keys, numbers).output.mT)
for n in (4, 12, 36):
    x = torch.randn(n, 4).double()
    ranks = [torch.linalg.matrix_rank(t).item() for t in (x @ x.mT, (x @ x.mT).exp())]
    print(f"{n:2} tokens: rank of the table q · k {ranks[0]}, of exp(q · k) {ranks[1]}")

# %% [markdown]
r"""
Asked for Ann, B answers $10 + 0.5 \cdot 60 = «40»$; for Eva, $60 + 0.5 \cdot 100 = «110»$. Each entry leaks into each answer, by $q \cdot k$. Only keys at right angles do not leak; width 4 has four of them.

Could we write into $S$ more cleverly? Eva's key is half the sum of the other four. So $S^\top q$ gives her half the sum of their answers: 50, if the four are right. **A state of four rows has four free answers**. The ranks of $q \cdot k$ say the same: «4», however many tokens.

A is right for all five. The table of $e^{q \cdot k}$ has rank «4», «12», «36», as many as tokens; a table of $\phi(q) \cdot \phi(k)$ has at most as many as features. So no state $\sum \phi(k) v^\top$ of fixed size gives softmax exactly; part [11a](11a_approximations.ipynb) comes near. A keeps all keys and values, the cache of 06c.

## 4 · When people move

So A is better? Ann moves. Her number is 10, then 20, now 60.
"""

# %%
predict("three_numbers")

# %%
ann, moved = torch.ones(3, 1), torch.tensor([[10.0], [20.0], [60.0]])
show(A=attend(ann[:1], ann, moved).output, B=ann[:1] @ (ann.mT @ moved))

# %% [markdown]
r"""
**"Who keeps everything loses nothing."** A answers «30», which was never Ann's number; B says «90», the sum. Let the state forget. A **gate** $g$ between 0 and 1 says how much of it stays:

$$S_i = g_i\, S_{i-1} + k_i v_i^\top$$

It is like the LSTM's cell of 08a, with one gate for the whole state. $g$ is made from the token alone, so that all gates are known beforehand.
"""

# %% [markdown] tags=["exercise:gated_state"]
# Write it. Each token has a gate of its own.

# %% [markdown]
r"""
Now 40 books of 100 entries: each is one of eight names, drawn at random, with a new number. We ask for everybody's latest.
"""

# %%
predict("best_gate")

# %%
write = yours("gated_state")
books = [phone_book.moves(names=8, who=100, seed=seed) for seed in range(40)]


def right(answer):
    """The share of latest numbers that `answer(book, query)` gives rightly."""
    asked = [phone_book.latest(book) for book in books]  # keys and signs
    pairs = zip(books, asked, strict=True)
    found = [phone_book.found(answer(book, now.keys), now.signs) for book, now in pairs]
    return sum(found) / sum(len(now.signs) for now in asked)


def by_gate(g):
    gates = torch.full((100,), g)
    return lambda book, query: query @ write(book.keys, book.signs, gates)


shares = {g: right(by_gate(g)) for g in (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0)}
linear_figures.gates(shares)

# %%
ago = torch.arange(99.0, -1, -1)  # 99, 98, ..., 0: how many entries ago


def by_attention(penalty):
    def answer(book, query):
        bias = (-penalty * ago).expand(len(query), -1)  # added to the scores
        return attend(10 * query, 10 * book.keys, book.signs, score_bias=bias).output

    return answer


print(f"A: {right(by_attention(0)):.0%}")
print(f"A, 0.5 off for each entry since: {right(by_attention(0.5)):.0%}")

# %% [markdown]
r"""
With $g = 0.7$ or $0.8$ the state is right in 4 of 10. With 1, old numbers drown the new; with 0.1, too much is gone. A, which keeps everything, has «3» %. **Where the past is wrong, age must count.** Tell A how old each entry is, by taking 0.5 off its score for each entry since (ALiBi, 05c), and A has «97» %. A gate is such a penalty (0.5 off is $g = 0.61$); its names also leak.

## In real work

| model | how the state forgets |
|---|---|
| RetNet (2023) | a fixed $g$ for each head |
| Mamba-2 (2024) | $g_i$ for each head, made from the token |
| gated linear attention (2023) | a gate for each row of $S$, made from the token |
| DeltaNet (2021) | takes back what $S$ answers to $k$ before it writes: $S + \beta\, k\,(v - S^\top k)^\top$ |

Without a tanh $S$ is a weighted sum, whose pieces can be added in any grouping: training need not go token by token. The bug that people meet is filler: zeros look harmless, but $\phi(0) = 1$:
"""

# %%
filler = torch.zeros(2, 1)
k, v = torch.cat([torch.tensor([[2.0]]), filler]), torch.cat([numbers[:1], filler])
real = torch.tensor([[1.0], [0], [0]])  # 1: a token, 0: filler
for name, features in (("filler", feature_map(k)), ("masked", feature_map(k) * real)):
    show(**{name: (features.mT @ v) / features.sum()})

# %% [markdown]
r"""
The one real value is 10; two tokens of filler take it to $3 \cdot 10 / (3 + 1 + 1) = «6»$. Set the features to 0, not the tokens.

## The phone book once more

B is attention without softmax, its brackets moved. Its names leak into each other, so it found «8» of «64»; A keeps everything, and found all. B keeps 256 numbers, however thick the book.

**To remember.** Drop the softmax, move the brackets, and attention is an RNN.

- Causal linear attention adds $\phi(k) v^\top$ to $S$ and $\phi(k)$ to $z$; `attend` with another score gives the same numbers.
- A state with $d$ rows has $d$ free answers.
- A gate forgets: $g S + k v^\top$. With softmax, a penalty on age does.

**Sources.** Katharopoulos et al. 2020 (arXiv:2006.16236); Schlag et al. 2021 (arXiv:2102.11174); Sun et al. 2023 (arXiv:2307.08621); Yang et al. 2023 (arXiv:2312.06635); Dao & Gu 2024 (arXiv:2405.21060). More: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [09](09_truncated_attention.ipynb): what if the input is long?
"""

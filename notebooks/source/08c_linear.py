# /// ideas
# [brackets]
# says = "without softmax (Q K^T) V = Q (K^T V): the same numbers for n d^2 products and not n^2 d"
# motive = "Leave the softmax out"
# shown = "operations(lambda: Q @ (K.mT @ V))"
# action = 'predict("brackets_save")'
#
# [state]
# says = "under the causal mask K^T V becomes a running sum: S + k v^T, read by q: an RNN"
# motive = "Here one bracket for all tokens will not do"
# shown = "10 at first, then 70"
# action = "by_state"
#
# [features]
# says = "linear attention: positive features phi, and each mixture divided by phi(q) . z"
# motive = "can be negative, and they do not sum to 1"
# shown = "z_i \\cdot \\phi(q_i)"
# action = 'predict("second_output")'
#
# [same]
# says = "the loop gives attend's numbers, with the logarithm of phi(q) . phi(k) as score"
# motive = "Is it still attention"
# shown = "def log_features"
# action = "by_state"
#
# [blunt]
# says = "it is another function than softmax: a longer query does not make it choose more sharply"
# motive = "only faster"
# shown = "query times"
# action = "Predict the last row"
#
# [leak]
# says = "a state answers with every entry, each times q . k: only keys at right angles do not leak"
# motive = "Then Eva comes"
# shown = "10 + 0.5"
# action = 'predict("fifth_name")'
#
# [rows]
# says = "a state of d rows has d free answers, however it is written"
# motive = "Could we write into"
# shown = "half the sum of their answers"
# action = 'predict("fifth_name")'
#
# [all_kept]
# says = "who keeps everything can be wrong: equal keys get the mean, the state has the sum"
# motive = "So A is better?"
# shown = "B=ann[:1] @ (ann.mT @ moved)"
# action = 'predict("three_numbers")'
#
# [gate]
# says = "a gate g fades the whole state before a token is written"
# motive = "Let the state forget"
# shown = "g_i\\, S_{i-1}"
# action = "gated_state"
#
# [fading]
# says = "fading alone costs nothing: a faded answer keeps its signs; newer names' leaks drown it"
# motive = "Why is 0.1 so bad"
# shown = "linear_figures.gates"
# action = 'predict("clean_keys")'
#
# [age]
# says = "softmax needs to be told the age: a penalty on the score, which is a gate without leaks"
# motive = "Can A be told"
# shown = "0.5 off for each entry since"
# action = 'predict("three_numbers")'
#
# [filler]
# says = "zeros as filler weigh something, since phi(0) = 1: set features to zero, not tokens"
# motive = "A batch of texts"
# shown = "masked"
# action = "Set the features to 0"
# ///

# %% [markdown]
r"""
{title}

Two machines read the same phone book and are asked for everybody's number. Machine A is attention: it keeps each name with its number, 40 numbers for every entry. Machine B keeps 256 numbers, however long the book is. What is B, and what does it lose?

**Afterwards you can** turn attention into a recurrent network; say what its state loses; write a gate with which it forgets.

{about}

<details><summary>中文摘要 · Chinese</summary>
去掉 softmax,三个矩阵的乘积就可以换括号。这一课亲手把注意力写成循环网络,用一本电话簿量出它的状态丢掉什么,再给状态加上“门”:号码会变的时候,要忘掉谁?为什么忘得太快也不行?
</details>
"""

# %% tags=["imports"]
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c08_attention_vs_rnn import linear_figures, phone_book
from lesson_lib.course import *
from lesson_lib.linear import feature_map
from lesson_lib.masks import causal
from lesson_lib.measure import operations

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
A name is a key: a random vector of 32 numbers, of length 1. A phone number from 0 to 255 is a value: its eight binary digits, written as signs. So $183 = 128 + 32 + 16 + 4 + 2 + 1$ has $-1$ for 64 and 8. `phone_book.draw` makes a book: `who` (a number for each name), `keys` (n, 32) and `signs` (n, 8). `found` counts the answers whose eight signs are all right; a guess is right once in 256.
"""

# %%
book = phone_book.draw(names=2, seed=0)
for signs in book.signs:
    print(phone_book.read(signs[None]), signs.int().tolist())
print("\nnames    A     B   (right answers, mean of 20 books)")
for n in (2, 4, 8, 16, 32, 64):
    a = b = 0
    for seed in range(20):
        _, keys, signs = phone_book.draw(names=n, seed=seed)
        by_a = attend(10 * keys, 10 * keys, signs).output  # times 10: sharp weights
        by_b = phone_book.machine_b(keys, keys, signs)
        a += phone_book.found(by_a, signs) / 20
        b += phone_book.found(by_b, signs) / 20
    print(f"{n:5} {a:5.1f} {b:5.1f}")

# %% [markdown]
r"""
A finds all numbers. B finds four of four and seven of eight, but then only «9.2» of 16 and «7.2» of 64.

## 1 · Move the brackets

Leave the softmax out of $\text{softmax}(QK^\top)\,V$. Three matrices remain, and their brackets can be moved:

$$(Q K^\top)\, V = Q\, (K^\top V)$$

By hand, with one number for each vector: the query is 2, the keys are 1 and 3, the values 10 and 20. On the left the scores are 2 and 6, and $2 \cdot 10 + 6 \cdot 20 = 140$. On the right $1 \cdot 10 + 3 \cdot 20 = 70$, and $2 \cdot 70 = 140$.
"""

# %%
predict("brackets_save")

# %%
Q, K, V = torch.randn(3, 1000, 10).double()
assert_close((Q @ K.mT) @ V, Q @ (K.mT @ V))
print("(Q K^T) V:", f"{operations(lambda: (Q @ K.mT) @ V):,}")
print("Q (K^T V):", f"{operations(lambda: Q @ (K.mT @ V)):,}")
assert torch.equal(by_b, keys @ (keys.mT @ signs))  # by_b: machine B's answers, above

# %% [markdown]
r"""
The result is the same, for a hundredth of the multiplications (`operations` counts those that run). They grow with $n d^2$ now and not with $n^2 d$. The last line shows what B is: attention without softmax, its brackets moved. All that it keeps is $K^\top V$, which has $32 \cdot 8 = 256$ numbers.

## 2 · Token by token

B's queries see all tokens. A model that writes text may only look back. Here one bracket for all tokens will not do, because each token sees other keys. So look into the bracket: $K^\top V$ is a sum with one term for each token, the **outer product** $k v^\top$. This is a matrix $(d_k, d_v)$; row $a$, column $b$ holds $k_a v_b$. (In these formulas a token's $q$, $k$, $v$ are columns.) Token $i$ needs the sum over tokens 1 to $i$, and that is the sum of token $i - 1$ plus one term:

$$S_i = S_{i-1} + k_i v_i^\top, \qquad o_i = S_i^\top q_i$$

In the example by hand $S$ is 10 at first, then 70. A **state** $S$ that starts at 0 and is renewed by the same rule at each token: that is an RNN. The plain RNN of 08a took a tanh; here we add, as in the LSTM's cell.

Is it still attention? Products $q \cdot k$ can be negative, and they do not sum to 1. Katharopoulos and others (2020) mend both. First, they replace each entry $x$ of queries and keys by a positive **feature** $\phi(x)$: $x + 1$ where $x$ is above 0, else $e^x$. Second, they divide each mixture by the sum of its products, $\phi(q_i) \cdot \phi(k_1) + \dots + \phi(q_i) \cdot \phi(k_i)$. This sum is $\phi(q_i) \cdot z_i$, where $z_i$ is the sum of the features so far, a second state:

$$z_i = z_{i-1} + \phi(k_i), \qquad o_i = \frac{S_i^\top \phi(q_i)}{z_i \cdot \phi(q_i)}$$

In $S$, too, $\phi(k_i)$ stands for $k_i$. This is **linear attention**.
"""

# %%
predict("second_output")

# %% [markdown] tags=["exercise:by_state"]
# Write it. `query` and `key` (n, d_k) are features already; `value` is (n, d_v).

# %% [markdown]
r"""
In `attend` softmax takes $e$ to the power of a score and divides by the sum. So if the score is the logarithm of $\phi(q) \cdot \phi(k)$, `attend` should give the same (`feature_map` is $\phi$):
"""


# %%
def log_features(query, key):
    return (feature_map(query) @ feature_map(key).mT).log()


read = yours("by_state")  # ours, until yours has passed
q, k, v = torch.randn(3, 50, 8).double()
by_table = attend(q, k, v, score=log_features, mask=causal(50)).output
assert_close(read(feature_map(q), feature_map(k), v), by_table)

# %% [markdown]
r"""
The loop and `attend`'s table of $50 \times 50$ weights give the same outputs. **Without softmax attention is an RNN.** Its state has $8 \cdot 8 + 8 = 72$ numbers here, at any length.

**"Linear attention is softmax attention, only faster."** Let one query ask two keys, and make the query longer. Predict the last row before you run the cell:
"""

# %%
one, two_keys = torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, 2.0], [0.0, 0.0]])
for times in (1, 3, 10):
    exp = attend(times * one, two_keys, two_keys).weights[0, 0]
    phi = attend(times * one, two_keys, two_keys, score=log_features).weights[0, 0]
    print(f"query times {times:2}: softmax {exp:.2f}, linear {phi:.2f}")

# %% [markdown]
r"""
These are the better key's weights. Softmax goes to «1.00». Linear attention stays at «0.75», because $\phi(2) = 3$ and $\phi(0) = 1$: the longer query multiplies both products alike. So this is another function, and a blunter one.

## 3 · What the state loses

Back to machine B, without features. Ann has 10, Ben 20, Cy 30 and Dora 40. Their keys are at right angles, and B finds each number. Then Eva comes with 60. Her key has a half in each of the four directions, so its product with each other key is 0.5.
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
show(B=(keys @ (keys.mT @ numbers)).mT)

# %% [markdown]
r"""
Asked for Ann, B answers $10 + 0.5 \cdot 60 = «40»$; asked for Eva, $60 + 0.5 \cdot 100 = «110»$. Each entry **leaks** into each answer, times $q \cdot k$. Only keys at right angles do not leak, and in width 4 there are no more than four of them.

Could we write into $S$ more cleverly? Eva's key is half the sum of the other four. Whatever stands in $S$, $S^\top q$ therefore gives her half the sum of their answers: 50, if these four are right. She has 60. **With four rows, four answers can be chosen; the fifth is then fixed.** Random keys of width 32 are only nearly at right angles, so B fails long before 32 names. A keeps every key and value, and nothing is fixed.

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
**"Who keeps everything loses nothing."** A answers «30», which was never Ann's number, and B says «90», the sum. Let the state forget. A **gate** $g$ between 0 and 1 says how much of it stays:

$$S_i = g_i\, S_{i-1} + k_i v_i^\top$$

It is the LSTM's forget gate (08a), one number for the whole state.
"""

# %% [markdown] tags=["exercise:gated_state"]
# Write it: `key` (n, d_k), `value` (n, d_v), `gate` (n). Give back the last $S$.

# %% [markdown]
r"""
Now 40 books of 100 entries: each entry is one of eight names, drawn at random, with a new number. `latest` says for each name its key and its last number; we ask for these.
"""

# %%
write = yours("gated_state")
books = [phone_book.moves(names=8, who=100, seed=seed) for seed in range(40)]


def right(answer, books):
    """The share of latest numbers that `answer(book, query)` gives rightly."""
    asked = [phone_book.latest(book) for book in books]
    pairs = zip(books, asked)
    found = [phone_book.found(answer(book, now.keys), now.signs) for book, now in pairs]
    return sum(found) / sum(len(now.signs) for now in asked)


def by_gate(g):
    gates = torch.full((100,), g)
    return lambda book, query: query @ write(book.keys, book.signs, gates)


# %%
predict("best_gate")

# %%
for g in (0.1, 0.8, 1.0):
    print(f"gate {g}: {right(by_gate(g), books):.0%}")

# %% [markdown]
r"""
With 1, each name's old numbers, about eleven, count as much as the latest. With 0.8 the state is right in «41» %. Why is 0.1 so bad? Is too much forgotten, or do the leaks of other names do it? Take the leaks away: we give the eight names keys at right angles, rows of an identity matrix, and change nothing else.
"""

# %%
predict("clean_keys")

# %%
clean = [book._replace(keys=torch.eye(32)[book.who]) for book in books]
gates = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
kinds = {"random keys": books, "keys at right angles": clean}
shares = {name: {g: right(by_gate(g), some) for g in gates} for name, some in kinds.items()}
linear_figures.gates(shares)

# %%
random, angles = shares["random keys"], shares["keys at right angles"]
assert angles[0.1] > 0.98 > 0.3 > random[0.1] and random[0.8] > 0.3
assert max(random[1.0], angles[1.0]) < 0.05

# %% [markdown]
r"""
With keys at right angles the gate 0.1 is right nearly always. An answer is read by its signs, and fading leaves all signs as they are. **So fading costs nothing by itself: it makes an old name faint, and then the leaks of newer names drown it.** So with random keys the gate must balance two losses. A small one drowns old names, a large one keeps old numbers.

Can A be told what is old? Take 0.5 off its score for each entry since (ALiBi, 05c). A weight is then multiplied by $e^{-0.5} = 0.61$ for each entry, as by a gate of 0.61.
"""

# %%
ago = torch.arange(99.0, -1, -1)  # 99, 98, ..., 0: how many entries ago


def by_attention(penalty, times=10):
    def answer(book, query):
        bias = (-penalty * ago).expand(len(query), -1)  # added to the scores
        query, keys = times * query, times * book.keys
        return attend(query, keys, book.signs, score_bias=bias).output

    return answer


print(f"A: {right(by_attention(0), books):.0%}")
print(f"A, 0.5 off for each entry since: {right(by_attention(0.5), books):.0%}")
print(f"the same, times 3: {right(by_attention(0.5, times=3), books):.0%}")

# %% [markdown]
r"""
Without the penalty A has «3» %, with it «97» %, although the keys are the random ones: its sharp weights hardly hear other names. With queries and keys times 3 and not 10 the weights are blunter, other names are heard, and it has «28» %. **Where the past can be wrong, age must count**, in a state and in attention.

## In real work

A batch of texts of different lengths is filled up with zeros. They look harmless, but $\phi(0) = 1$. Here is one real value, 10, and two tokens of filler:
"""

# %%
filler = torch.zeros(2, 1)
k, v = torch.cat([torch.tensor([[2.0]]), filler]), torch.cat([numbers[:1], filler])
real = torch.tensor([[1.0], [0], [0]])  # 1: a token, 0: filler
for name, features in (("filler", feature_map(k)), ("masked", feature_map(k) * real)):
    query = torch.ones(1, 1)  # a feature
    show(**{name: query @ (features.mT @ v) / (query @ features.sum(0))})

# %% [markdown]
r"""
The filler adds nothing to $S$, but 1 to $z$ each time: $3 \cdot 10 / (3 + 1 + 1) = «6»$. Set the features to 0, not the tokens; then it is «10» again.

## To carry away

`notebooks/carry/recurrent.py` has linear attention and the gate in plain torch, each token by token (`linear_step`, `gated_step`) and for all tokens at once. This is your gate with the query that reads, for a batch:
"""

# %%
from carry import recurrent as carried

show_source(carried.gated_step)

# %%
S, g = torch.zeros(1, 1), torch.tensor(0.5)
for number in moved:
    answer, S = carried.gated_step(ann[0], ann[0], number, g, S)
    show(answer=answer)

# %% [markdown]
r"""
Ann's three numbers with $g = 0.5$: 10, then 25, then «72.5». The latest counts most, and the old ones are still in it.

## The phone book once more

B is attention without softmax, its brackets moved. Its keys are not at right angles, so names leak into each other, and of 64 it found «7.2»; A keeps everything, and found all. Where people moved, A had «3» % until it was told their entries' age.

**To remember.** Drop the softmax, move the brackets, and attention is an RNN.

- Causal linear attention adds $\phi(k) v^\top$ to $S$ and $\phi(k)$ to $z$; `attend` with another score gives the same.
- A state of $d$ rows has $d$ free answers; keys that are not at right angles leak.
- A gate forgets, $g S + k v^\top$; too small a gate lets newer leaks drown the old.

**Sources.** Katharopoulos et al. 2020 (arXiv:2006.16236); Sun et al. 2023 (arXiv:2307.08621, a fixed gate: RetNet); Dao & Gu 2024 (arXiv:2405.21060, a gate made from the token: Mamba-2). More: [evidence](evidence/08_attention_vs_rnn_evidence.ipynb).

**Next**: [08d · Overwriting](08d_overwriting.ipynb): can a state replace one number and keep the others?
"""

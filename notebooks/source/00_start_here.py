# %% [markdown]
r"""
# 00 · Start here: how do I work with this?

**The question.** You can read about attention in an hour and still not be able to use it. What makes the difference is what you do between two
sentences. How does this course want you to work?

**After this lesson you can**

- run a lesson, break it, and get it back;
- predict before you run, and read what you see;
- hand in an answer and learn from a wrong one;
- look up every letter and every word of the course.

**Time** about 15 minutes. **You need** Python, matrix products, a little PyTorch (tensors, modules). Nothing of attention.
"""

# %%
import torch

from lesson_lib.attention import attend
from lesson_lib.charts import heatmap
from lesson_lib.checks import check, hint, progress
from lesson_lib.show import show, show_source

# %% [markdown]
r"""
> **Predict first.** The cell above printed nothing. What does that tell you?
>
> <details><summary>Answer</summary>
> That it worked: the library is there. If it ended in an error, the next cell says what is missing.
> </details>

## 1 · Does everything work here?

Click on the next cell and press **Shift + Enter**. It looks at your machine and says, in sentences, what is missing and how to mend it.
"""

# %% tags=["nbval-ignore-output"]
from lesson_lib.cli import doctor

_ = doctor.main(brief=True)

# %% [markdown]
r"""
## 2 · Predict, run, check

Every lesson asks you to guess before you compute. Not as a test: a guess that turns out wrong is the moment at which you learn. So *really* guess, then
open the fold.

> **Predict.** `torch.ones(2, 3) @ torch.ones(3, 4)`: which shape, and which number is in every cell?
>
> <details><summary>Answer</summary>
> Shape (2, 4), and 3 in every cell: each is a sum of three products 1 · 1.
> </details>
"""

# %%
show(torch.ones(2, 3) @ torch.ones(3, 4))

# %% [markdown]
r"""
`show` prints tensors the same way on every machine, at four decimals. Give it names and it prints them with their shapes:
"""

# %%
show(table=torch.tensor([[0.5, 0.25], [0.125, 1 / 3]]))

# %% [markdown]
r"""
> **Do.** In the cell above, add a third number to *one* of the two rows, and run it. Read the last line of the error. Then repair it.
>
> <details><summary>What you should find</summary>
> A ValueError: rows of a tensor must be of one length. Nothing is broken: change the cell back and run it again. This notebook is your own copy; no
> update overwrites it.
> </details>

Three more things that help when something goes wrong:

| you want to | do |
|---|---|
| stop a cell that runs too long | the ■ button. A training that you stop keeps what it has learned |
| start afresh | **Kernel → Restart Kernel and Run All Cells** |
| get the original of this notebook back | delete or rename your copy in `work/`, then `make lab` copies it again |

## 3 · Hand in an answer

Exercises live in notebooks of their own, one for each lesson. Each has a card (★ to ★★★, minutes, why it matters), a place for your answer, and
three words:

- `check(answer)` says whether it is right; if not, what is probably wrong, with the smallest example that shows it;
- `hint("name")` asks you a question; call it again for the next one, there are three;
- `solution("name")` shows an answer.

Here is one to try. A row of weights is `[0.25, 0.75]`; the values are 8 and 4. **What is the weighted sum?** Write your answer in place of the
dots. First hand in the dots, then a wrong number, then the right one.
"""

# %%
weighted_sum = ...

check(weighted_sum, "weighted_sum")

# %% [markdown]
r"""
You may type a number, such as `3.5`, or a sum as text, such as `"0.5 * 6 + 0.5 * 2"`. Wrong types are answered too: try a list, or a word.

Stuck? Ask:
"""

# %%
hint("weighted_sum")

# %% [markdown]
r"""
What you have solved is kept on your machine, and survives a restart. `progress()` shows it, and what comes next. A click on a lesson under the table
unfolds its exercises:
"""

# %%
progress()

# %% [markdown]
r"""
Two more, for when you need them. Type them into a cell of your own (the + button makes one):

```python
from lesson_lib.checks import export_progress, reset

reset("weighted_sum")  # forget this one: do it again
export_progress("progress.csv")  # for a spreadsheet
```

The export is for an instructor who asks for it. It holds a row for each exercise: passed or not, how many attempts, the day of the first pass. Your
name and your answers are not in it, and nobody gets it unless you send it.

## 4 · The one function

The whole course is one function. You will meet it in lesson 01, and take it apart in lesson 02. Here it is at work: two queries, three keys, three values.

> **Predict.** The first query points exactly the way of the first key, and is four times as long. To which of the three values will its output
> be closest: 10, 20 or 40?
>
> <details><summary>Answer</summary>
> To 10. The first row of weights leans to the first key; but the other two values pull, and the output is 13.3, not 10.
> </details>
"""

# %%
query = 4 * torch.eye(3)[:2]
key, value = torch.eye(3), torch.tensor([[10.0], [20.0], [40.0]])
output, weights = attend(query, key, value)
show(weights=weights, output=output)

# %% [markdown]
r"""
Each row of the weights sums to 1. A row says how much its query takes from each value. Here is the same table as a picture. Pictures in this course
have queries as rows and keys as columns unless they say otherwise, and bright means large.
"""

# %%
heatmap(
    weights,
    rows=["query 1", "query 2"],
    columns=["key 1", "key 2", "key 3"],
    limits=(0, 1),
    alt="A table of two queries by three keys: query 1 puts most weight on key 1, query 2 on key 2.",
    caption="Each query puts most of its weight on the key that it points to.",
)

# %% [markdown]
r"""
> **Do.** Change `4 *` to `40 *` two cells above and run both cells. What happens to the weights? And at `0 *`?
>
> <details><summary>What you should find</summary>
> At 40 each query takes only the value of its own key: outputs 10 and 20. At 0 all weights are 1/3, and both outputs are the average, 23.3333. Lesson
> 02 explains both.
> </details>

Nothing is hidden. `show_source` prints the library's own code in place:
"""

# %%
from lesson_lib.masks import causal

show_source(causal)

# %% [markdown]
r"""
## 5 · Claims

The course follows five Chinese texts and *runs* what they claim. It calls them

- **S0**, an overview of self-attention;
- **S1**, notes on position and complexity;
- **S2**, a description of the Transformer, with code;
- **S3**, lecture notes on self-attention, part 2;
- **S4**, a worked example of self-attention, with code.

You will see verdicts like these:

| sign | verdict | meaning |
|---|---|---|
| ✓ | holds | computed, and found as claimed |
| ◐ | holds with a condition | true, but only if something is added that the text leaves out |
| ✗ | corrected | computed, and found otherwise |

A verdict is printed only after its cell has found it. The list of all claims is called the ledger. How do they divide?
"""

# %%
from lesson_lib.claims import VERDICTS, ledger

for name in VERDICTS[:3]:
    print(f"{sum(row.verdict == name for row in ledger().values()):3} {name}")

# %% [markdown]
r"""
More claims need a condition than hold as they stand: texts leave things out. Lesson [12](12_claims.ipynb) has all of them on one page.

## 6 · Letters

The same letter means the same thing in every formula, every signature and every test.

| letter | counts |
|---|---|
| $b$ | sequences in a batch |
| $h$ | heads (lesson 04) |
| $n$ | query tokens |
| $m$ | key tokens; $m = n$ in self-attention |
| $d_{model}$ | numbers of a token, in the model |
| $d_k$ | numbers of a query, and of a key |
| $d_v$ | numbers of a value, and of an output |

Tokens are rows: a sequence is $(n, d)$, a batch of them $(b, n, d)$. In signatures you will read `Float[Tensor, "*b n d_k"]`: a tensor of
floating-point numbers whose last two axes are $n$ and $d_k$, with any number of axes in front (a `#` before a name allows size 1 there). A mask is boolean, and **True means: may look**.

> **Predict.** Queries have the shape (2, 7, 5), keys (2, 11, 5), values (2, 11, 3). Which shapes have weights and outputs?
>
> <details><summary>Answer</summary>
> Weights (2, 7, 11), one row per query; outputs (2, 7, 3), one per query, as wide as a value.
> </details>
"""

# %%
output, weights = attend(
    torch.randn(2, 7, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 3)
)
print("weights", tuple(weights.shape), "  outputs", tuple(output.shape))

# %% [markdown]
r"""
## 7 · Words

You need none of these yet. Come back when one is missing.

| English | 中文 | in short |
|---|---|---|
| attention | 注意力 | mixing values by how relevant their keys are to a query |
| self-attention | 自注意力 | attention of a sequence to itself |
| query | 查询 | what is looked for |
| key | 键 | what a query is compared with |
| value | 值 | what gets mixed |
| output | 输出 | the mixture of values that a query receives |
| score | 注意力分数 | one number per query and key, before softmax |
| weight | 注意力权重 | a score after softmax; a row sums to 1 |
| softmax | 归一化指数函数 | positive shares from any numbers |
| dot product | 点积 | sum of products of two vectors' parts |
| additive score | 加性注意力 | a small network scores each pair |
| scale, 1/√d | 缩放 | keeps dot products small at the start of training |
| temperature | 温度 | what scores are divided by; high means even weights |
| saturation | 饱和 | one weight near 1, no gradient |
| kernel regression | 核回归 | a mean of measured values, the near ones weighted more |
| hard attention, soft attention | 硬注意力, 软注意力 | one place, drawn by chance; a mixture of all places |
| glimpse | 瞥视 | a small piece of a picture, looked at sharply |
| REINFORCE, policy gradient | 策略梯度 | make choices that were rewarded more probable |
| baseline | 基线 | the reward that was to be expected; only what is better counts |
| alignment | 对齐 | which input a piece of output comes from |
| part of speech | 词性 | noun, verb, and so on |
| Bayes limit | 贝叶斯上限 | the best share of right answers for anybody who sees no more |
| projection | 投影 | a learned matrix that makes queries, keys or values from tokens |
| mask | 掩码 | who may look at whom |
| causal mask | 因果掩码 | no token looks at later ones |
| padding | 填充 | filler that makes sequences equally long |
| token | 词元 | one item of a sequence: a word, a pixel, a frame |
| embedding | 嵌入 | a learned vector for a symbol |
| head | 头 | one attention of several side by side |
| multi-head attention | 多头注意力 | several attentions, mixed by one matrix |
| cross-attention | 交叉注意力 | queries from one sequence, keys and values from another |
| linear read-out | 线性读出 | a matrix and a bias that name an answer from an output |
| ablation | 消融 | take a part away and measure what is missing |
| equivariant | 等变 | shuffle the input, and the output is shuffled the same way |
| positional encoding | 位置编码 | what tells a token where it stands |
| sinusoid | 正弦曲线 | a sine or cosine wave |
| frequency, wavelength | 频率, 波长 | turn per token; tokens per full turn |
| rotation matrix | 旋转矩阵 | turns vectors and keeps their lengths |
| relative position | 相对位置 | how far apart two tokens stand, and on which side |
| rotary positions | 旋转位置编码 | queries and keys turned by their own positions |
| encoder, decoder | 编码器, 解码器 | the stack that reads the input; the stack that writes the output |
| residual connection | 残差连接 | a sub-layer's input added to its output |
| feed-forward network | 前馈网络 | two linear maps with a ReLU between, for each token alone |
| layer normalisation | 层归一化 | each token brought to mean 0 and variance 1 by its own numbers |
| batch normalisation | 批归一化 | each column brought there by the whole batch |
| dropout | 随机失活 | while training, numbers set to 0 at random |
| warm-up | 学习率预热 | a learning rate that starts small and rises |
| teacher forcing | 教师强制 | training a decoder with the right words before each place |
| greedy decoding, beam search | 贪心解码, 束搜索 | the likeliest next word; several likely texts side by side |
| masked language model | 掩码语言模型 | guesses hidden words from both sides |
| autoregressive | 自回归 | writes one word after the other, each seeing those before |
| perplexity | 困惑度 | how many equally likely next characters a model hesitates between |
| convolution | 卷积 | the same filter at every place, near neighbours only |
| receptive field | 感受野 | the inputs that can reach an output |
| kernel, tap | 卷积核, 卷积核元素 | a convolution's weights; those for one of its places |
| channel | 通道 | one of the numbers that a pixel has, such as red |
| feature map | 特征图 | the grid of vectors that a convolution leaves |
| patch | 图像块 | a small square of pixels, taken as one token |
| class token | 分类标记 | an extra token from which the answer is read |
| inductive bias | 归纳偏置 | what a model assumes before it sees data |
| overfitting | 过拟合 | right on what was trained on, wrong on the rest |
| generative adversarial network | 生成对抗网络 | one network makes pictures, another tells them from real ones |
| object query | 目标查询 | a learned token that asks for one object |
| bipartite matching | 二分图匹配 | the cheapest way to give each object a query of its own |
| intersection over union | 交并比 | how well two boxes overlap, 0 to 1 |
| precision, recall | 精确率, 召回率 | share of finds that are right; share of objects that are found |
| recurrent network | 循环神经网络 | reads one token after another, carrying a state |
| hidden state | 隐状态 | what a recurrent network carries from token to token |
| gate | 门 | a number from 0 to 1 that says how much passes |
| long short-term memory (LSTM), gated recurrent unit (GRU) | 长短期记忆网络, 门控循环单元 | recurrent networks with gates |
| bidirectional | 双向 | read from the left and from the right, both states side by side |
| vanishing gradient | 梯度消失 | it shrinks at each step back, until nothing is left to learn from |
| long-range dependency | 长程依赖 | an output that needs a token far away |
| sequential operations | 顺序操作数 | steps that must wait for each other |
| maximum path length | 最大路径长度 | steps between the input and the output that lie furthest apart |
| linear attention | 线性注意力 | weights without softmax, products of feature maps; causal, it is a recurrent network |
| feature map (of a vector) | 特征映射 | a function whose products take the place of exp(q · k) |
| frame | 帧 | a short stretch of sound as a vector, here 40 numbers for each 10 ms |
| phoneme | 音素 | a sound of a language, such as the s in "see" |
| truncated attention | 截断自注意力 | attention within a window |
| window, radius | 窗口, 半径 | the tokens that may be seen; how far it reaches to each side |
| latency | 延迟 | how long one waits for an answer |
| node, edge | 节点, 边 | the things of a graph; a line between two of them |
| neighbour | 邻居 | a node at the other end of an edge |
| self-loop | 自环 | an edge from a node to itself |
| message passing | 消息传递 | values go along edges, and each node adds up what arrives |
| graph neural network (GNN) | 图神经网络 | a network whose layers pass messages |
| graph attention | 图注意力 | attention along the edges of a graph |
| heterophily | 异配性 | edges join those that are unlike |
| efficient attention | 高效注意力 | forms of attention that cost less than all pairs |
| global token | 全局标记 | a token that sees all, and that all see |
| low rank | 低秩 | a table that is a sum of few rank-one tables; here: few mixed keys |
| random features | 随机特征 | random numbers of each token whose products are exp(q · k) on average |
| benchmark | 基准测试 | tasks on which methods are compared alike |
| online softmax | 在线 softmax | softmax in one pass, with the largest score so far |
| tile | 分块 | a block of queries and keys whose scores are computed at once |
| fused kernel | 融合算子 | one compiled program in the place of several steps; here: softmax attention without the table |
| multi-query, grouped-query attention | 多查询注意力, 分组查询注意力 | all query heads, or groups of them, share one head of keys and values |
| ring attention | 环形注意力 | keys go round a circle of processes; exact, and each holds a part |
| extrapolation | 外推 | what a law says beyond where it was measured |

## 8 · Three wrong ideas worth having once

**"I must run every cell exactly once."** You may run a cell again as often as you like, with two things to know. A name means what it was last
given: if an earlier cell complains after a later one, run all cells from the top. And random numbers go on from where they were.

> **Predict.** The next cell draws a number twice without a seed, and twice with the same seed. Which of the two pairs is equal?
>
> <details><summary>Answer</summary>
> The second. A seed sets the start, and the same start gives the same numbers. Every experiment of this course says its seeds.
> </details>
"""

# %%
free = [torch.randn(()).item() for _ in range(2)]
seeded = [
    torch.randn((), generator=torch.Generator().manual_seed(7)).item() for _ in range(2)
]
print("without a seed, equal:", free[0] == free[1])
print("with the same seed, equal:", seeded[0] == seeded[1])

# %% [markdown]
r"""
**"If the shapes fit, it is right."** Here the first line multiplies in the wrong order, and nobody complains, since all axes are 3 long:

> **Predict.** Does `value @ weights` equal `weights @ value` here?
>
> <details><summary>Answer</summary>
> No. Both have the shape (3, 3); only one is attention. That is why the tests of this course give every axis another size.
> </details>
"""

# %%
square_weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
square_values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
show(wrong=square_values @ square_weights, right=square_weights @ square_values)

# %% [markdown]
r"""
**"An error means that I failed."** Errors of this library are written to be read. Each says which argument, what it got, and the repair:

> **Predict.** What is wrong in the call below?
>
> <details><summary>Answer</summary>
> The mask is made of 0 and 1, not of False and True. The message says how to convert it, and what it would mean.
> </details>
"""

# %%
try:
    attend(
        torch.randn(2, 3),
        torch.randn(2, 3),
        torch.randn(2, 3),
        mask=torch.tensor([[1, 0], [1, 1]]),
    )
except TypeError as error:
    print(error)

# %% [markdown]
r"""
## 9 · The way from here

- Exercises: after each lesson, in `exercises/`.
- Next: [01 · History](01_history.ipynb), where you train what led to attention; in a hurry, go on to 02.
- Then: [02 · Scoring](02_scoring.ipynb), where you write attention by hand, [03 · Matrix form](03_matrix_form.ipynb), [04 · Multi-head attention](04_multi_head.ipynb), [05 · Positional encoding](05_positional_encoding.ipynb), and [06 · Transformer](06_transformer.ipynb), where the parts make a machine.
- Then, in any order: attention beside [CNNs](07_attention_vs_cnn.ipynb) and [RNNs](08_attention_vs_rnn.ipynb), [windows](09_truncated_attention.ipynb), [graphs](10_graph_attention.ipynb), [what else makes it cheaper](11_efficient_attention.ipynb), and [what the sources got right](12_claims.ipynb).
- In any notebook: `progress()` shows where you stand.

**Summary.** Guess, run, compare. Hand in answers early and wrong. Change cells: it is your copy. Rows are queries, columns are keys, True means: may
look.
"""

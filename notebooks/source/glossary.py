# %% [markdown]
r"""
# Words and letters of the course

You need none of this page to begin. Come back when a word or a letter is missing.

## Letters

A letter keeps its meaning unless a part says otherwise. Tokens are rows: a sequence is $(n, d)$, a batch of sequences $(b, n, d)$.

| letter | counts |
|---|---|
| $b$ | sequences in a batch |
| $h$ | heads |
| $n$ | query tokens |
| $m$ | key tokens; $m = n$ in self-attention |
| $d_{model}$ | numbers of a token, in the model |
| $d_k$ | numbers of a query, and of a key |
| $d_v$ | numbers of a value, and of an output |

In signatures you will read `Float[Tensor, "*b n d_k"]`: a tensor of floating-point numbers whose last two axes are $n$ and $d_k$, with any number of axes in
front. A `#` before a name allows the size 1 there. A mask is boolean, and **True means: may look**.

The shapes of two sequences, each with 7 queries and 11 keys:
"""

# %%
import torch

from lesson_lib.attention import attend

query, key, value = torch.randn(2, 7, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 3)
output, weights = attend(query, key, value)
print("weights", tuple(weights.shape), "  outputs", tuple(output.shape))

# %% [markdown]
r"""
Weights have a row per query and a column per key. Outputs have a row per query, and are as wide as a value.

## Signs

The course follows five Chinese texts and runs what they claim. S0 is an overview of self-attention; S1 are notes on position and complexity; S2
describes the Transformer, with code; S3 are lecture notes, part 2; S4 is a worked example, with code. Their claims are decided so:

| sign | verdict | meaning |
|---|---|---|
| ✓ | holds | computed, and found as claimed |
| ◐ | holds with a condition | true in part or at times, or only if something is added |
| ✗ | corrected | false, even if read kindly |
| – | unsaid | code or a figure, which claims nothing |

## Words

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
| rotary position embedding (RoPE) | 旋转位置编码 | queries and keys turned by their own positions |
| position interpolation | 位置插值 | new positions squeezed into the range that training knew |
| encoder, decoder | 编码器, 解码器 | the stack that reads the input; the stack that writes the output |
| residual connection | 残差连接 | a sub-layer's input added to its output |
| feed-forward network | 前馈网络 | two linear maps with a ReLU between, for each token alone |
| layer normalisation | 层归一化 | each token brought to mean 0 and variance 1 by its own numbers |
| batch normalisation | 批归一化 | each column brought there by the whole batch |
| dropout | 随机失活 | while training, numbers set to 0 at random |
| warm-up | 学习率预热 | a learning rate that starts small and rises |
| teacher forcing | 教师强制 | training a decoder with the right words before each place |
| in-context learning | 上下文学习 | using what only this text says, while no weight changes |
| induction head, previous-token head | 归纳头, 前一记号头 | looks at the token behind the earlier copy of its own, and copies it; looks at the token before |
| logit lens | 逐层读出 | a layer's rows read out as if the model ended there |
| activation patching | 激活替换 | a row of one text put in the place of another's: does the answer follow? |
| prefix matching score | 前缀匹配分数 | the weight on tokens that followed an earlier copy: it finds candidates |
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
| stride | 步幅 | by how many pixels a convolution moves |
| class token | 分类标记 | an extra token from which the answer is read |
| inductive bias, prior | 归纳偏置, 先验 | what a model assumes before it sees data |
| locality, weight sharing | 局部性, 权值共享 | only near pixels count; every place has the same weights |
| shift equivariance | 平移等变性 | move the input, and the output moves along |
| overfitting | 过拟合 | right on what was trained on, wrong on the rest |
| generative adversarial network | 生成对抗网络 | one network makes pictures, another tells them from real ones |
| object query | 目标查询 | a learned token that asks for one object |
| bipartite matching | 二分图匹配 | the cheapest way to give each object a query of its own |
| intersection over union | 交并比 | how well two boxes overlap, 0 to 1 |
| precision, recall | 精确率, 召回率 | share of finds that are right; share of objects that are found, or of questions that are answered |
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
| delta rule | 增量规则 | a state is asked for a key first, and what is missing of the value is written: the old answer is replaced |
| feature map (of a vector) | 特征映射 | a function whose products take the place of exp(q · k) |
| frame | 帧 | a short stretch of sound as a vector, here 40 numbers for each 10 ms |
| phoneme | 音素 | a sound of a language, such as the s in "see" |
| truncated attention | 截断自注意力 | attention within a window |
| window, radius | 窗口, 半径 | the tokens that may be seen; how far it reaches to each side |
| latency | 延迟 | how long one waits for an answer |
| node, edge | 节点, 边 | the things of a graph; a line between two of them |
| neighbour | 邻居 | a node at the other end of an edge |
| self-loop | 自环 | an edge from a node to itself |
| degree | 度 | how many edges arrive at a node |
| key-value cache (KV cache) | 键值缓存 | keys and values of the tokens so far, kept while a model writes, so that each is made once |
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
| index score, indexer | 索引分数、索引器 | a cheap second score of a few narrow heads, by which keys are chosen, and the layer that computes it |
| choice of keys (top-k) | 键的选择(top-k) | a mask of each query's k keys with the best index scores, among those that are allowed |
| KL divergence | KL 散度 | how far one distribution is from another: 0 where they agree, else above 0 |
| fused kernel (FlashAttention, flash attention) | 融合算子 | one compiled program in the place of several steps; here: softmax attention without the table |
| multi-query, grouped-query attention (MQA, GQA) | 多查询注意力, 分组查询注意力 | all query heads, or groups of them, share one head of keys and values |
| RMSNorm, QK-norm | 均方根归一化, 查询键归一化 | a row divided by the root of its mean square; the same for queries and keys, head by head |
| soft cap | 分数软上限 | cap · tanh(score / cap): soft scores stay, loud ones stop |
| sink | 注意力汇 | where a head puts its weight if it finds nothing: the first token, or a score that no token has |
| ring attention | 环形注意力 | keys go round a circle of processes; exact, and each holds a part |
| extrapolation | 外推 | what a law says beyond where it was measured |
| logits | 对数几率(未归一化分数) | scores of all answers before the softmax |
| cross-entropy | 交叉熵 | minus the log of the right answer's share: small when the model was sure and right |
| entropy | 熵 | how even a set of shares is; 0 when one share is 1 |
| multilayer perceptron (MLP) | 多层感知机 | linear maps with a bend between them |
| hyperparameter | 超参数 | what is chosen before training, such as the learning rate |
| learning rate | 学习率 | how far one step of training moves the numbers |
| validation set, test set | 验证集, 测试集 | data for choosing; data for the final number, used for nothing else |
| seed | 随机种子 | where a generator of random numbers starts |
| initialisation | 初始化 | how the first, random numbers of a model are drawn |
| gradient | 梯度 | how the loss changes with each number of the model |
| graph convolutional network (GCN) | 图卷积网络 | message passing with weights that the degrees give |
| path graph | 路径图 | nodes in a row, each joined to the next |
"""

"""The simulated device is another one: what a GPU refuses, it refuses; what a GPU computes otherwise, it
does. Run with `--device simulated`."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention.figures import masks
from lesson_lib.charts.basic import heatmap
from lesson_lib.device import device, on, seed, to_device
from lesson_lib.masks import from_edges, padding
from lesson_lib.measure import peak_mib
from tests.gpu.simulated import NAME, PIECE


def on_the_cpu(*shape):
    return torch.randn(*shape, device="cpu")


def there(*shape):
    return on_the_cpu(*shape).to(device())


def test_it_is_the_lessons_device():
    assert device().type == NAME and there(2).device.type == NAME
    with on("cpu"):
        assert to_device(there(2)).device.type == "cpu"


@pytest.mark.parametrize(
    "mixed",
    [
        lambda: there(3) + on_the_cpu(3),
        lambda: there(2, 3) @ on_the_cpu(3, 2),
        lambda: on_the_cpu(3).add_(there(3)),
        lambda: torch.cat([there(2), on_the_cpu(2)]),
        lambda: there(3).masked_fill(on_the_cpu(3) > 0, 0.0),
        lambda: on_the_cpu(3)[there(3) > 0],
        lambda: F.embedding(torch.zeros(2, dtype=torch.long, device="cpu"), there(3, 4)),
        lambda: F.scaled_dot_product_attention(there(1, 1, 2, 4), on_the_cpu(1, 1, 2, 4), there(1, 1, 2, 4)),
    ],
    ids=["sum", "product", "in place", "cat", "mask", "index of the CPU's", "embedding", "attention"],
)
def test_tensors_of_two_devices_are_refused(mixed):
    with pytest.raises(RuntimeError, match=r"at least two devices|same device|Expected all tensors"):
        mixed()


def test_a_number_and_an_index_may_come_from_the_cpu():
    x = there(3)
    assert_close(x * torch.tensor(2.0, device="cpu"), x + x)
    assert torch.equal(x[torch.tensor([2, 0], device="cpu")], torch.stack([x[2], x[0]]))


def test_numpy_and_generators_of_the_cpu_are_refused():
    with pytest.raises(TypeError, match="to numpy"):
        there(3).numpy()
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(3, device=NAME, generator=torch.Generator("cpu"))
    assert there(3).cpu().numpy().shape == (3,)


def test_the_same_seed_gives_other_numbers_there_and_the_same_ones_again():
    torch.manual_seed(3)
    first, of_cpu = torch.randn(5, device=NAME), on_the_cpu(5)
    torch.manual_seed(3)
    again = torch.randn(5, device=NAME)
    torch.manual_seed(3)
    assert torch.equal(first, again) and torch.equal(of_cpu, on_the_cpu(5))
    assert not torch.equal(first.cpu(), of_cpu)
    drawn = torch.randn(5, generator=seed(3), device="cpu")
    assert torch.equal(drawn, to_device(drawn).cpu())


def test_sums_are_rounded_elsewhere_and_close():
    x, y = on_the_cpu(50, 300), on_the_cpu(300, 50)
    here, away = x @ y, (to_device(x) @ to_device(y)).cpu()
    assert not torch.equal(here, away)
    # 300 products each, which every processor adds in an order of its own
    assert_close(here, away, atol=1e-4, rtol=1e-5)


def test_what_is_added_at_an_index_is_added_in_another_order_each_time():
    many, index = to_device(on_the_cpu(3000)), torch.zeros(3000, dtype=torch.long)
    sums = set()
    for _ in range(20):
        torch.manual_seed(0)  # no seed decides that
        sums.add(torch.zeros(1).index_add(0, index, many).item())
    assert len(sums) > 1 and max(sums) - min(sums) < 1e-3


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_its_loops_are_torchs_forward_and_backward(kind):
    with torch.device("cpu"):
        layer, x = kind(3, 5), torch.randn(7, 2, 3)
    here = layer(x)[0]
    here.square().sum().backward()
    gradients = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    away = to_device(layer)(to_device(x))[0]
    away.square().sum().backward()
    assert_close(away.cpu(), here)
    for parameter, wanted in zip(layer.parameters(), gradients, strict=True):
        assert parameter.grad.device.type == NAME
        assert_close(parameter.grad.cpu(), wanted, atol=1e-5, rtol=1e-5)


def test_memory_is_counted_in_pieces_and_freed():
    assert peak_mib(lambda: torch.zeros(1)) == PIECE / 2**20
    assert peak_mib(lambda: [torch.zeros(2**18) for _ in range(5)]) == 5

    def one_after_the_other():
        for _ in range(5):
            torch.zeros(2**18)

    assert peak_mib(one_after_the_other) <= 2
    x = torch.ones(512, 512)
    assert peak_mib(lambda: x @ x) == 1  # the workspace of the first product stays, and is not counted


def test_views_and_changes_in_place_share_their_numbers():
    x = torch.zeros(3, 4)
    x[1].fill_(2.0)
    x.t()[0] += 1
    assert x.tolist() == [[1, 0, 0, 0], [3, 2, 2, 2], [1, 0, 0, 0]]
    torch.sum(torch.ones(2, 4), 0, out=x[2])
    assert x[2].tolist() == [2, 2, 2, 2]
    assert x.unsqueeze_(0).transpose_(1, 2).shape == (1, 4, 3)


def test_a_layer_moved_there_learns():
    with torch.device("cpu"):
        layer = nn.Linear(4, 1)
    layer = to_device(layer).double().float()
    x, wanted = there(64, 4), torch.zeros(64, 1)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(100):
        optimiser.zero_grad()
        loss = F.mse_loss(layer(x), wanted)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]


def test_masks_lie_where_their_numbers_do_while_the_cpu_is_torchs_default():
    """As in a lesson, which moves its tensors and sets no default."""
    with torch.device("cpu"):
        hidden = padding(to_device(torch.tensor([1, 3])), 3)
        graph = from_edges(to_device(torch.tensor([[0, 1, 2], [1, 2, 0]])), 3)
        output, _ = attend(there(2, 3, 5), there(2, 3, 5), there(2, 3, 7), mask=hidden & graph)
    assert hidden.tolist() == [[[True, False, False]], [[True] * 3]]
    assert output.device.type == NAME and output[0, 0].tolist() == [0.0] * 7


def test_a_table_that_lies_there_is_drawn():
    table = to_device(torch.tensor([[True, False], [False, True]], device="cpu"))
    for picture in (masks({"a graph": table}), heatmap(table.float(), alt="Two weights of 1.")):
        assert picture.figure.axes[0].images[0].get_array().tolist() == [[1, 0], [0, 1]]

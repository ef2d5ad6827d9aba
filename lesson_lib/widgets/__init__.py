"""Things to move: ipywidgets over `attend`, each with a still picture for readers without a kernel.

Every widget is moved by keyboard as well as by mouse, shows its formulas on hover or focus, and needs no
network.
"""

from lesson_lib.widgets.alignment import AlignmentExplorer
from lesson_lib.widgets.clocks import ClockExplorer
from lesson_lib.widgets.continuation import ContinuationExplorer
from lesson_lib.widgets.explorer import Explorer
from lesson_lib.widgets.glimpses import GlimpseExplorer
from lesson_lib.widgets.graph import GraphExplorer
from lesson_lib.widgets.heads import HeadExplorer
from lesson_lib.widgets.ledger import LedgerExplorer
from lesson_lib.widgets.machine import MachineExplorer
from lesson_lib.widgets.paths import PathExplorer, WavePlayer
from lesson_lib.widgets.pixels import PixelExplorer
from lesson_lib.widgets.recall import DistanceExplorer
from lesson_lib.widgets.recording import RecordingExplorer
from lesson_lib.widgets.rotation import RotationExplorer
from lesson_lib.widgets.scale import ScaleExplorer
from lesson_lib.widgets.shapes import ShapeExplorer
from lesson_lib.widgets.softmax import SoftmaxExplorer
from lesson_lib.widgets.steps import SevenStepsExplorer
from lesson_lib.widgets.timeline import TimelineExplorer
from lesson_lib.widgets.window import WindowExplorer

__all__ = [
    "AlignmentExplorer",
    "ClockExplorer",
    "ContinuationExplorer",
    "DistanceExplorer",
    "Explorer",
    "GlimpseExplorer",
    "GraphExplorer",
    "HeadExplorer",
    "LedgerExplorer",
    "MachineExplorer",
    "PathExplorer",
    "PixelExplorer",
    "RecordingExplorer",
    "RotationExplorer",
    "ScaleExplorer",
    "SevenStepsExplorer",
    "ShapeExplorer",
    "SoftmaxExplorer",
    "TimelineExplorer",
    "WavePlayer",
    "WindowExplorer",
]

"""A student that learns from the translations of a teacher, a whole sentence at a time (Kim and Rush, 2016).

student/translations/      what the teacher made of the training sources, in parts that are whole or not there
student/data/              prepared data whose targets are these translations
student/                   for the rest a run like any other, trained on that data
"""

from __future__ import annotations

from qkv.distill.request import Distilling
from qkv.distill.student import data_of, distill

__all__ = ["Distilling", "data_of", "distill"]

"""Tests of annotation.sheets."""

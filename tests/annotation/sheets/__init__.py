"""Tests of annotation.report.sheets."""

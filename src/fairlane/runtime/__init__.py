"""Agents on this machine: launch, watch, settle, recover."""

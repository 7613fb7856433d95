"""The pipeline: which stage is due, who answers its question, and when.

Rows are the queue. `due` computes what there is to do; a work is leased in the store, so that no two processes
(or an agent and a process) ask the same; what a stage commits moves its cursor in the same transaction. So a kill at
any point repeats at most one question and loses nothing.
"""

from mcp_memory.service.pipeline.desk import Asked, Pipeline
from mcp_memory.service.pipeline.worker import Worker

__all__ = ["Asked", "Pipeline", "Worker"]

"""Front-ends: each turns one way of writing a workflow (Python, BPMN, script) into a program that replay can drive."""

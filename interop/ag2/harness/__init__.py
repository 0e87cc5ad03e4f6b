"""What the tests share: hub processes, clients, a scripted model, statements.

Nothing here speaks the protocol: every frame is the real package's own.
"""

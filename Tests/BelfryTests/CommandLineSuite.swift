import Testing

/// Everything here starts processes, each of which wants a core for a moment; one at a time, so
/// that the limits of the tests that run beside them hold on a small machine.
@Suite(.serialized)
enum CommandLineSuite {}

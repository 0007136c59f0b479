import Foundation
import HTTPClient
import Synchronization
import Wire

/// Reads a stream of server-sent events.
enum EventStreamReader {
  private final class Parser: Sendable {
    let parser = Mutex(EventStreamParser())
  }

  /// Opens the stream. It ends when the server ends it, and is closed when the caller drops it.
  static func read(_ url: URL) -> AsyncThrowingStream<StreamedEvent, any Error> {
    AsyncThrowingStream { continuation in
      let task = Task {
        let state = Parser()
        do {
          let status = try await ClientTransport.shared.stream(url, accept: "text/event-stream") {
            bytes in
            for event in try state.parser.withLock({ try $0.feed(bytes) }) {
              continuation.yield(event)
            }
          }
          guard status == 200 else {
            throw CommandFailure(
              "the event stream was refused with status \(status)", exitCode: .unreachable)
          }
          continuation.finish()
        } catch let error as SyntaxFault {
          continuation.finish(throwing: CommandFailure(error.message, exitCode: .unreachable))
        } catch let error as HTTPFailure {
          continuation.finish(
            throwing: CommandFailure("the event stream broke: \(error)", exitCode: .unreachable))
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}

extension AsyncThrowingStream where Element: Sendable, Failure == any Error {
  /// A stream of the elements that `produce` yields, in a task that is cancelled when the iteration
  /// ends.
  static func whileIterated(
    _ produce: @escaping @Sendable (_ yield: @Sendable (Element) -> Void) async throws -> Void
  ) -> Self {
    Self { continuation in
      let task = Task {
        do {
          try await produce { continuation.yield($0) }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}

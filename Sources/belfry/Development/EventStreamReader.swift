import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Reads a stream of server-sent events through URLSession, whose delegate hands out bytes as they
/// come on every system.
final class EventStreamReader: NSObject, URLSessionDataDelegate {
  private let continuation: AsyncThrowingStream<StreamedEvent, any Error>.Continuation
  private let parser = Mutex(EventStreamParser())

  private init(_ continuation: AsyncThrowingStream<StreamedEvent, any Error>.Continuation) {
    self.continuation = continuation
  }

  /// Opens the stream; it ends when the server ends it, and is closed when the caller drops it.
  static func read(_ request: URLRequest) -> AsyncThrowingStream<StreamedEvent, any Error> {
    AsyncThrowingStream { continuation in
      var request = request
      request.timeoutInterval = 7 * 24 * 3600  // Between two events there may be a night.
      request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
      let session = URLSession(
        configuration: .ephemeral, delegate: EventStreamReader(continuation), delegateQueue: nil)
      let task = session.dataTask(with: request)
      continuation.onTermination = { _ in session.invalidateAndCancel() }
      task.resume()
    }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    if let status = (response as? HTTPURLResponse)?.statusCode, status != 200 {
      continuation.finish(
        throwing: CommandFailure(
          "the event stream was refused with status \(status)", exitCode: .unreachable))
      completionHandler(.cancel)
    } else {
      completionHandler(.allow)
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    do {
      for event in try parser.withLock({ try $0.feed(data) }) { continuation.yield(event) }
    } catch {
      continuation.finish(throwing: error)
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    continuation.finish(
      throwing: error.map {
        CommandFailure("the event stream broke: \($0.localizedDescription)", exitCode: .unreachable)
      })
  }
}

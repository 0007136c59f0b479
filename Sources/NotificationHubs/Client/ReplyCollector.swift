#if canImport(FoundationNetworking)
  import Foundation
  import FoundationNetworking
  import Synchronization

  /// Takes the replies of a session's tasks, one that asks for credentials included.
  ///
  /// FoundationNetworking never ends a task whose reply is 401 with `WWW-Authenticate: Basic` or
  /// `Digest`, as a proxy may send it, unless the session's own delegate says no; then the task
  /// ends as cancelled, and its reply stands. A hub's clients have nothing else to show.
  final class ReplyCollector: NSObject, URLSessionDataDelegate {
    private struct Exchange {
      let continuation: CheckedContinuation<(Data, URLResponse), any Error>
      var body = Data()
      /// Takes the body of a 2xx reply in place of ``body``.
      var receive: (@Sendable (Data) throws -> Void)?
      /// What it has thrown.
      var failure: (any Error)?
      var hasRefused = false
    }

    /// By the task's identifier, which is unique in a session.
    private let exchanges = Mutex<[Int: Exchange]>([:])

    /// - Parameters:
    ///   - session: Whose delegate this is.
    ///   - receive: Takes the body of a 2xx reply piece by piece; it is empty then.
    func reply(
      to request: URLRequest, over session: URLSession,
      receive: (@Sendable (Data) throws -> Void)? = nil
    ) async throws -> (Data, URLResponse) {
      let task = session.dataTask(with: request)
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          exchanges.withLock {
            $0[task.taskIdentifier] = Exchange(
              continuation: continuation, receive: receive)
          }
          task.resume()
        }
      } onCancel: {
        task.cancel()
      }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      let number = dataTask.taskIdentifier
      let status = (dataTask.response as? HTTPURLResponse)?.statusCode ?? 0
      let receive = exchanges.withLock { exchanges in
        let receive = (200...299).contains(status) ? exchanges[number]?.receive : nil
        if receive == nil { exchanges[number]?.body.append(data) }
        return receive
      }
      guard let receive else { return }
      do { try receive(data) } catch {
        exchanges.withLock { $0[number]?.failure = error }
        dataTask.cancel()
      }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
      completionHandler: @escaping (URLRequest?) -> Void
    ) {
      exchanges.withLock { $0[task.taskIdentifier]?.body = Data() }
      completionHandler(request)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      exchanges.withLock { $0[task.taskIdentifier]?.hasRefused = true }
      completionHandler(.cancelAuthenticationChallenge, nil)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      let exchange = exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }
      guard let exchange else { return }
      if let failure = exchange.failure {
        exchange.continuation.resume(throwing: failure)
      } else if let error, !exchange.hasRefused || task.response == nil {
        exchange.continuation.resume(throwing: error)
      } else if let response = task.response {
        exchange.continuation.resume(returning: (exchange.body, response))
      } else {
        exchange.continuation.resume(throwing: URLError(.badServerResponse))
      }
    }
  }
#endif

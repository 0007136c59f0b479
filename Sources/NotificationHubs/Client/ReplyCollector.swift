#if canImport(FoundationNetworking)
  import Foundation
  import FoundationNetworking

  /// Takes the replies of a session's tasks, one that asks for credentials included.
  ///
  /// FoundationNetworking never ends a task whose reply is 401 with `WWW-Authenticate: Basic` or
  /// `Digest`, as a proxy may send it, unless the session's own delegate says no; then the task
  /// ends as cancelled, and its reply stands. A hub's clients have nothing else to show.
  ///
  /// An exchange ends in ``end(_:with:)`` alone, by the reply or by its caller's cancellation,
  /// whichever comes first.
  final class ReplyCollector: NSObject, URLSessionDataDelegate {
    private struct Exchange: Sendable {
      let continuation: CheckedContinuation<(Data, URLResponse), any Error>
      var body = Data()
      /// Takes the body of a 2xx reply in place of ``body``.
      var receive: (@Sendable (Data) throws -> Void)?
      /// What it has thrown.
      var failure: (any Error)?
      var hasRefused = false
    }

    /// By the task's identifier, which is unique in a session.
    private let exchanges = Locked<[Int: Exchange]>([:])

    /// - Parameters:
    ///   - session: Whose delegate this is.
    ///   - receive: Takes the body of a 2xx reply piece by piece; it is empty then.
    /// - Throws: `CancellationError` as soon as the calling task is cancelled, whatever the
    ///   session's task does then.
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
          // A handler that ran before the exchange was there found nothing to end.
          if Task.isCancelled {
            end(task, with: .failure(CancellationError()))
            task.cancel()
          } else {
            task.resume()
          }
        }
      } onCancel: {
        end(task, with: .failure(CancellationError()))
        task.cancel()
      }
    }

    /// Gives the caller its result, unless it has one.
    private func end(_ task: URLSessionTask, with result: Result<(Data, URLResponse), any Error>) {
      exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }?
        .continuation.resume(with: result)
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
      guard let exchange = exchanges.withLock({ $0[task.taskIdentifier] }) else { return }
      if let failure = exchange.failure {
        end(task, with: .failure(failure))
      } else if let error, !exchange.hasRefused || task.response == nil {
        end(task, with: .failure(error))
      } else if let response = task.response {
        end(task, with: .success((exchange.body, response)))
      } else {
        end(task, with: .failure(URLError(.badServerResponse)))
      }
    }
  }
#endif

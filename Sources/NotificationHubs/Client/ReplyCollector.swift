import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Collects the replies of a session's tasks, including those that ask for credentials, and refuses
/// redirects.
///
/// Only ``end(_:with:)`` completes an exchange, on the reply or the caller's cancellation,
/// whichever comes first.
final class ReplyCollector: NSObject, URLSessionDataDelegate {
  private struct Exchange: Sendable {
    let continuation: CheckedContinuation<(Data, URLResponse), any Error>
    let followsRedirects: Bool
    let limit: Int
    var body = Data()
    /// Receives the body of a 2xx reply in place of ``body``.
    var receive: (@Sendable (Data) throws -> Void)?
    /// The reason for which this object has cancelled the task.
    var failure: (any Error)?
    var hasRefused = false
  }

  /// Exchanges by task identifier, which is unique within a session.
  private let exchanges = Locked<[Int: Exchange]>([:])

  /// - Parameters:
  ///   - session: The session that this is the delegate of.
  ///   - limit: The largest body that is collected, in bytes.
  ///   - receive: Receives the body of a 2xx reply piece by piece; the returned body is then
  ///     empty.
  /// - Throws: `CancellationError` as soon as the calling task is cancelled, whatever happens to
  ///   the session's task.
  func reply(
    to request: URLRequest, over session: URLSession, followsRedirects: Bool, limit: Int,
    receive: (@Sendable (Data) throws -> Void)? = nil
  ) async throws -> (Data, URLResponse) {
    let task = session.dataTask(with: request)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        exchanges.withLock {
          $0[task.taskIdentifier] = Exchange(
            continuation: continuation, followsRedirects: followsRedirects, limit: limit,
            receive: receive)
        }
        // A cancellation handler that ran before the exchange was registered found nothing to
        // end.
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

  /// Resumes the caller with its result, unless it already has one.
  private func end(_ task: URLSessionTask, with result: Result<(Data, URLResponse), any Error>) {
    exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }?
      .continuation.resume(with: result)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let number = dataTask.taskIdentifier
    let status = (dataTask.response as? HTTPURLResponse)?.statusCode ?? 0
    let (receive, isTooLarge) = exchanges.withLock { exchanges in
      let receive = (200...299).contains(status) ? exchanges[number]?.receive : nil
      guard receive == nil else { return (receive, false) }
      exchanges[number]?.body.append(data)
      return (nil, exchanges[number].map { $0.body.count > $0.limit } ?? false)
    }
    do {
      if isTooLarge { throw URLError(.dataLengthExceedsMaximum) }
      try receive?(data)
    } catch {
      exchanges.withLock { $0[number]?.failure = error }
      dataTask.cancel()
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    let isFollowed = exchanges.withLock { exchanges in
      exchanges[task.taskIdentifier]?.body = Data()
      return exchanges[task.taskIdentifier]?.followsRedirects == true
    }
    guard isFollowed, request.url?.scheme?.lowercased() == "https" else {
      // The task ends by itself. FoundationNetworking ends the process if it is cancelled here.
      end(task, with: .success((Data(), response)))
      return completionHandler(nil)
    }
    completionHandler(request)
  }

  #if canImport(FoundationNetworking)
    // FoundationNetworking never completes a task whose reply is 401 with `WWW-Authenticate: Basic`
    // or `Digest`, as a proxy may send it, unless the session's own delegate rejects the challenge;
    // then the task ends as cancelled but its reply is valid. Hub clients have no other credentials
    // to offer.
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      exchanges.withLock { $0[task.taskIdentifier]?.hasRefused = true }
      completionHandler(.cancelAuthenticationChallenge, nil)
    }
  #endif

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

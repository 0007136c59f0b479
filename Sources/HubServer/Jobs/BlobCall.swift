import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One HTTP exchange with a store of files. A body is written to a file as it arrives, so that it
/// is never in memory whole. Redirections are not followed: they could lead to any host.
final class BlobCall: NSObject, URLSessionDataDelegate {
  struct Reply {
    let status: Int
    /// Bytes written to the file.
    let size: Int64
  }

  private struct State {
    var file: FileHandle?
    var size: Int64 = 0
    var status = 0
    var fault: JobFault?
    var waiter: CheckedContinuation<Reply, any Error>?
    var task: URLSessionTask?
  }

  private let state: Mutex<State>
  private let limit: Int64

  private init(file: FileHandle?, limit: Int64) {
    state = Mutex(State(file: file))
    self.limit = limit
  }

  /// - Parameters:
  ///   - file: Where the body of a reply of 200 goes; `nil` drops it.
  ///   - limit: The longest body, in bytes.
  /// - Throws: ``JobFault``; `CancellationError`.
  static func perform(
    _ request: URLRequest, into file: sending FileHandle? = nil, limit: Int64 = 1 << 20
  ) async throws -> Reply {
    let call = BlobCall(file: file, limit: limit)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    configuration.timeoutIntervalForRequest = 60
    let session = URLSession(configuration: configuration, delegate: call, delegateQueue: nil)
    defer { session.finishTasksAndInvalidate() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let task = session.dataTask(with: request)
        call.state.withLock { state in
          state.waiter = continuation
          state.task = task
        }
        if Task.isCancelled { call.end(throwing: CancellationError()) } else { task.resume() }
      }
    } onCancel: {
      call.end(throwing: CancellationError())
    }
  }

  private func end(throwing error: any Error) {
    let (waiter, task) = state.withLock { state in
      defer { state.waiter = nil }
      return (state.waiter, state.task)
    }
    task?.cancel()
    waiter?.resume(throwing: error)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection: HTTPURLResponse,
    newRequest: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    state.withLock { $0.status = (response as? HTTPURLResponse)?.statusCode ?? 0 }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let fault = state.withLock { state -> JobFault? in
      guard state.fault == nil else { return nil }
      let isBody = state.status == 200 && state.file != nil
      state.size += Int64(data.count)
      if state.size > limit {
        state.fault = JobFault("the file has more than \(limit) bytes")
      } else if isBody {
        do { try state.file?.write(contentsOf: data) } catch {
          state.fault = JobFault("the disk does not take the file: \(error.localizedDescription)")
        }
      }
      return state.fault
    }
    if let fault { end(throwing: fault) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    let (waiter, reply) = state.withLock { state in
      defer { state.waiter = nil }
      return (state.waiter, Reply(status: state.status, size: state.size))
    }
    if let error {
      let reason = (error as? URLError).map { "network error \($0.errorCode)" } ?? "network error"
      waiter?.resume(
        throwing: JobFault("the host cannot be reached (\(reason))", isTransient: true))
    } else {
      waiter?.resume(returning: reply)
    }
  }
}

import Foundation
import HTTPServer
import HubTesting

/// Starts a server on a free port, runs `body` and stops it.
func withServer<Result>(
  _ configuration: HTTPConfiguration = HTTPConfiguration(),
  answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
  body: (HTTPListener) async throws -> Result
) async throws -> Result {
  let listener = try HTTPListener(configuration, handler: ClosureHandler(answer: answer))
  do {
    let result = try await body(listener)
    await listener.stop()
    return result
  } catch {
    await listener.stop()
    throw error
  }
}

/// Answers with what was asked: method, target, `X-Test` headers and body.
@Sendable func echo(_ request: HTTPRequest) async -> HTTPResponse {
  let headers = request.headers.values("x-test").joined(separator: "+")
  let body = String(decoding: request.body, as: UTF8.self)
  return HTTPResponse(
    .ok, text: "\(request.method.rawValue) \(request.target) [\(headers)] \(body)")
}

/// A place where one side waits until the other side has said a word.
actor Signal {
  private var isSet = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func set() {
    isSet = true
    for continuation in waiting { continuation.resume() }
    waiting = []
  }

  /// Also ends when the test is cancelled, as by its time limit, so that the run goes on.
  func wait() async {
    if isSet { return }
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiting.append($0) }
    } onCancel: {
      Task { await self.set() }
    }
  }
}

/// A clock that stands still until a test moves it.
final class HandClock: @unchecked Sendable {  // guarded by `condition`
  private let condition = NSCondition()
  private var time: UInt64 = 1_000_000_000
  private var reads = 0

  func advance(by duration: Duration) {
    let (seconds, attoseconds) = duration.components
    condition.withLock {
      time += UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
  }

  /// Blocks until the server, which reads the clock each time that it looks at its connections, has
  /// looked at those of now.
  ///
  /// - Parameter looks: A connection that is accepted reads it as well.
  func awaitRound(looks: Int = 3) {
    condition.withLock {
      let enough = reads + looks
      while reads < enough { condition.wait() }
    }
  }

  var clock: HTTPClock {
    HTTPClock { [self] in
      condition.withLock {
        reads += 1
        condition.broadcast()
        return time
      }
    }
  }
}

import HTTPServer

/// A handler made of a closure.
struct ClosureHandler: HTTPHandler {
  let answer: @Sendable (HTTPRequest) async -> HTTPResponse

  func respond(to request: HTTPRequest) async -> HTTPResponse { await answer(request) }
}

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

  func wait() async {
    if isSet { return }
    await withCheckedContinuation { waiting.append($0) }
  }
}

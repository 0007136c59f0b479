import Foundation
import NotificationHubs

/// A backend with users whose name is their password, one installation and one message.
final class FakeBackend: HTTPTransport {
  private struct State {
    var installation: Data?
    var owner: String?
    var calls: [String] = []
    var isUp = true
    var hasRead = false
    /// The number of the token that is valid.
    var generation = 1
    var sessions: Set<String> = []
    var signIns = 0
    var whileRenewing: (@Sendable () async -> Void)?
    var intercept: Interception?
  }

  /// Answers a request in place of the backend; `nil` leaves it to the backend.
  typealias Interception = @Sendable (TransportRequest) async -> TransportReply?

  private let state = Locked(State())
  /// Whether the message can be read once only.
  private let isReadOnce: Bool

  init(isReadOnce: Bool = false) { self.isReadOnce = isReadOnce }

  var installation: Installation? {
    state.withLock { $0.installation }.flatMap { try? Installation(jsonData: $0) }
  }
  var owner: String? { state.withLock { $0.owner } }
  var calls: [String] { state.withLock { $0.calls } }
  /// The sign-ins that are valid: a user and a number each.
  var sessions: Set<String> { state.withLock { $0.sessions } }
  var isUp: Bool {
    get { state.withLock { $0.isUp } }
    set { state.withLock { $0.isUp = newValue } }
  }
  /// Makes the tokens invalid; they can be renewed.
  func expireTokens() { state.withLock { $0.generation += 1 } }
  /// Ends all sign-ins.
  func revoke() { state.withLock { $0.sessions = [] } }
  /// Does this before the answer to the next renewal.
  func whileRenewing(_ action: @escaping @Sendable () async -> Void) {
    state.withLock { $0.whileRenewing = action }
  }

  /// Shows each request to a test first; `nil` ends that.
  func intercept(_ interception: Interception?) {
    state.withLock { $0.intercept = interception }
  }

  func send(_ request: TransportRequest) async throws -> TransportReply {
    if let reply = await state.withLock({ $0.intercept })?(request) { return reply }
    let path = request.url.path()
    let isUp = state.withLock { state in
      state.calls.append("\(request.method) \(path)")
      return state.isUp
    }
    guard isUp else { throw URLError(.cannotConnectToHost) }
    let shown = request.headers["Authorization"] ?? ""
    if request.method == "POST", path == "/api/token" {
      if let user = ["alice", "bob"].first(where: {
        shown == "Basic " + Data("\($0):\($0)".utf8).base64EncodedString()
      }) {
        let session = state.withLock { state in
          state.signIns += 1
          let session = "\(user)-\(state.signIns)"
          state.sessions.insert(session)
          return session
        }
        return token(of: session)
      }
      let session = shown.replacing("Bearer refresh-", with: "")
      guard sessions.contains(session) else { return refused }
      let action = state.withLock { state in
        defer { state.whileRenewing = nil }
        return state.whileRenewing
      }
      await action?()
      return token(of: session)
    }
    let generation = state.withLock { $0.generation }
    let parts = shown.replacing("Bearer ", with: "").split(separator: "/")
    guard parts.count == 2, sessions.contains(String(parts[0])), parts[1] == "\(generation)" else {
      return refused
    }
    let user = parts[0].prefix { $0 != "-" }
    return state.withLock { answer(request, path, String(user), String(parts[0]), &$0) }
  }

  private func answer(
    _ request: TransportRequest, _ path: String, _ user: String, _ session: String,
    _ state: inout State
  ) -> TransportReply {
    switch (request.method, path.split(separator: "/").last) {
    case ("PUT", _):
      (state.installation, state.owner) = (request.body, user)
      return TransportReply(status: 200)
    case ("GET", "m1"):
      defer { state.hasRead = true }
      guard !state.hasRead || !isReadOnce else {
        return TransportReply(status: 410, body: Data(#"{"Message":"it was read"}"#.utf8))
      }
      return TransportReply(
        status: 200, body: Data(#"{"Id":"m1","Payload":"fetched","Read":false}"#.utf8))
    case ("POST", "notifications"):
      return TransportReply(status: 200, body: Data(#"{"Id":"m1"}"#.utf8))
    case ("DELETE", "token"):
      state.sessions.remove(session)
      return TransportReply(status: 204)
    case ("DELETE", _) where state.owner == user:
      (state.installation, state.owner) = (nil, nil)
      return TransportReply(status: 200)
    default: return TransportReply(status: 404, body: Data(#"{"Message":"no"}"#.utf8))
    }
  }

  private var refused: TransportReply {
    TransportReply(status: 401, body: Data(#"{"Message":"wrong"}"#.utf8))
  }

  private func token(of session: String) -> TransportReply {
    let generation = state.withLock { $0.generation }
    return TransportReply(
      status: 200,
      body: Data(
        """
        {"User":"\(session.prefix { $0 != "-" })","Token":"\(session)/\(generation)",
         "ExpiresAt":"2030-01-01T00:00:00Z","RefreshToken":"refresh-\(session)",
         "RefreshExpiresAt":"2030-06-01T00:00:00Z"}
        """.utf8))
  }
}

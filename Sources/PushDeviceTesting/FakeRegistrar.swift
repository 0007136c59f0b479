import Foundation
public import NotificationHubs
public import PushDevice

/// A hub in memory, or a backend for signed-in users, which keeps installations and can fail.
public final class FakeRegistrar: InstallationRegistrar {
  /// A request that arrived.
  public enum Request: Hashable, Sendable {
    /// The registration of an installation.
    case save(Installation)
    /// The removal of an installation, with the user's authorization.
    case delete(String, user: String?)
    /// The end of a user's sign-in.
    case endSignIn(user: String)
  }

  /// The answer to the next requests.
  public enum Answer: Hashable, Sendable {
    /// The request is carried out.
    case success
    /// The request is carried out, but its reply does not arrive.
    case lostReply
    /// The request is refused, or does not arrive.
    case failure(RegistrarError)
    /// The hub hears nothing.
    public static let offline = Answer.failure(RegistrarError(.unreachable, "offline"))
  }

  private struct Contents {
    var installations: [String: Installation] = [:]
    var requests: [Request] = []
    var attempts = 0
    var lostReplies = 0
    var answer = Answer.success
    var sessions: Set<String> = []
    var refusalOfRemovals: RegistrarError?
    var refusalOfRegistrations: RegistrarError?
    var isHolding = false
    var held: [CheckedContinuation<Void, Never>] = []
    var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  /// The address of hub or backend.
  public let address: String
  /// Whether it is a backend.
  public let isForSignedInUsersOnly: Bool
  private let keepsSessions: Bool
  private let contents = Locked(Contents())

  /// - Parameter keepsSessions: Whether it is a backend that answers only users whose session has
  ///   begun with ``beginSession(of:)``, as `BackendAccount` needs one.
  public init(
    address: String = "https://hub.example/news", isForSignedInUsersOnly: Bool = false,
    keepsSessions: Bool = false
  ) {
    self.address = address
    self.isForSignedInUsersOnly = isForSignedInUsersOnly || keepsSessions
    self.keepsSessions = keepsSessions
  }

  /// Begins a user's session, which the end of their sign-in ends.
  public func beginSession(of user: String) { contents.withLock { _ = $0.sessions.insert(user) } }

  /// The users with a session.
  public var sessions: Set<String> { contents.withLock { $0.sessions } }

  /// The refusal of each removal from now on; `nil` for none.
  public var refusalOfRemovals: RegistrarError? {
    get { contents.withLock { $0.refusalOfRemovals } }
    set { contents.withLock { $0.refusalOfRemovals = newValue } }
  }

  /// The refusal of each registration from now on; `nil` for none.
  public var refusalOfRegistrations: RegistrarError? {
    get { contents.withLock { $0.refusalOfRegistrations } }
    set { contents.withLock { $0.refusalOfRegistrations = newValue } }
  }

  /// The answer to each request from now on.
  public var answer: Answer {
    get { contents.withLock { $0.answer } }
    set { contents.withLock { $0.answer = newValue } }
  }

  /// The requests that were carried out, in order.
  public var requests: [Request] { contents.withLock { $0.requests } }
  /// The number of all requests, those that failed included.
  public var attempts: Int { contents.withLock { $0.attempts } }
  /// The number of requests that were carried out and whose reply was lost.
  public var lostReplies: Int { contents.withLock { $0.lostReplies } }
  /// The hub's installations by id.
  public var installations: [String: Installation] { contents.withLock { $0.installations } }

  /// Loses an installation, as a hub does that is restored from a backup.
  public func lose(_ id: String) { contents.withLock { $0.installations[id] = nil } }

  /// Lets requests wait until ``release()``.
  public func hold() { contents.withLock { $0.isHolding = true } }

  /// Returns once a request waits.
  public func heldRequest() async { await heldRequests(1) }

  /// Returns once so many requests wait.
  public func heldRequests(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = contents.withLock { contents in
        let isThere = contents.held.count >= count
        if !isThere { contents.watchers.append((count, continuation)) }
        return isThere
      }
      if isThere { continuation.resume() }
    }
  }

  /// Answers the requests that wait, and all later ones.
  public func release() {
    let held = contents.withLock { contents in
      defer { (contents.isHolding, contents.held) = (false, []) }
      return contents.held
    }
    for continuation in held { continuation.resume() }
  }

  /// Answers one of the requests that wait.
  /// - Parameter number: Its place in the order of arrival, from 0.
  public func release(_ number: Int) {
    contents.withLock { $0.held.remove(at: number) }.resume()
  }

  public func save(_ installation: Installation) async throws(RegistrarError) {
    try await answer(.save(installation))
  }

  public func delete(installation id: String, of userID: String?) async throws(RegistrarError) {
    try await answer(.delete(id, user: userID))
  }

  public func endSignIn(of userID: String) async throws(RegistrarError) {
    if keepsSessions { try await answer(.endSignIn(user: userID)) }
  }

  public func installation(_ id: String) async throws(RegistrarError) -> Installation? {
    installations[id]
  }

  private func answer(_ request: Request) async throws(RegistrarError) {
    await waitIfHeld()
    let error: RegistrarError? = contents.withLock { contents in
      contents.attempts += 1
      if case .failure(let error) = contents.answer { return error }
      switch request {
      case .delete: if let refusal = contents.refusalOfRemovals { return refusal }
      case .save: if let refusal = contents.refusalOfRegistrations { return refusal }
      case .endSignIn: break
      }
      if keepsSessions, request.user.map({ contents.sessions.contains($0) }) != true {
        return RegistrarError(.unauthorized, "there is no such session")
      }
      contents.requests.append(request)
      switch request {
      case .save(let installation):
        contents.installations[installation.installationID] = installation
      case .delete(let id, let user):
        let isOthers = keepsSessions && contents.installations[id]?.userID != user
        if !isOthers { contents.installations[id] = nil }
      case .endSignIn(let user): contents.sessions.remove(user)
      }
      guard contents.answer == .lostReply else { return nil }
      contents.lostReplies += 1
      return RegistrarError(.unreachable, "no reply")
    }
    if let error { throw error }
  }

  private func waitIfHeld() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let watchers: [CheckedContinuation<Void, Never>]? = contents.withLock { contents in
        guard contents.isHolding else { return nil }
        contents.held.append(continuation)
        let count = contents.held.count
        defer { contents.watchers.removeAll { $0.count <= count } }
        return contents.watchers.filter { $0.count <= count }.map(\.continuation)
      }
      guard let watchers else { return continuation.resume() }
      for watcher in watchers { watcher.resume() }
    }
  }
}

extension FakeRegistrar.Request {
  /// The user whose authorization it has.
  fileprivate var user: String? {
    switch self {
    case .save(let installation): installation.userID
    case .delete(_, let user): user
    case .endSignIn(let user): user
    }
  }
}

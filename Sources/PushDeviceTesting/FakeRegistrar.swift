import Foundation
public import NotificationHubs
public import PushDevice

/// A hub in memory, or a backend for signed-in users, which keeps installations and can fail.
public final class FakeRegistrar: InstallationRegistrar {
  /// A request that arrived.
  public enum Request: Hashable, Sendable {
    case save(Installation)
    case delete(String, user: String?)
  }

  /// The answer to the next requests.
  public enum Answer: Hashable, Sendable {
    case success
    /// The request is carried out, but its reply does not arrive.
    case lostReply
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
    var isHolding = false
    var held: [CheckedContinuation<Void, Never>] = []
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  public let address: String
  public let isForSignedInUsersOnly: Bool
  private let contents = Locked(Contents())

  public init(address: String = "https://hub.example/news", isForSignedInUsersOnly: Bool = false) {
    self.address = address
    self.isForSignedInUsersOnly = isForSignedInUsersOnly
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
  public func heldRequest() async {
    await withCheckedContinuation { continuation in
      let isThere = contents.withLock { contents in
        if contents.held.isEmpty { contents.watchers.append(continuation) }
        return !contents.held.isEmpty
      }
      if isThere { continuation.resume() }
    }
  }

  /// Answers the requests that wait.
  public func release() {
    let held = contents.withLock { contents in
      defer { (contents.isHolding, contents.held) = (false, []) }
      return contents.held
    }
    for continuation in held { continuation.resume() }
  }

  public func save(_ installation: Installation) async throws(RegistrarError) {
    try await answer(.save(installation))
  }

  public func delete(installation id: String, of userID: String?) async throws(RegistrarError) {
    try await answer(.delete(id, user: userID))
  }

  public func installation(_ id: String) async throws(RegistrarError) -> Installation? {
    installations[id]
  }

  private func answer(_ request: Request) async throws(RegistrarError) {
    await waitIfHeld()
    let error: RegistrarError? = contents.withLock { contents in
      contents.attempts += 1
      if case .failure(let error) = contents.answer { return error }
      contents.requests.append(request)
      switch request {
      case .save(let installation):
        contents.installations[installation.installationID] = installation
      case .delete(let id, _): contents.installations[id] = nil
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
        defer { contents.watchers = [] }
        return contents.watchers
      }
      guard let watchers else { return continuation.resume() }
      for watcher in watchers { watcher.resume() }
    }
  }
}

import Cryptography
import Foundation
import HubCore

/// Replaces the master key of a store that may be in use.
///
/// Every step is idempotent, so a killed rotation is simply run again: the key file and the store
/// record its progress.
/// 1. The new key is put before the old one in `master.key`, which servers reread by themselves.
/// 2. Once every server has it, the new key is activated, in one transaction. Values are sealed
///    under it from then on.
/// 3. Values under the old key are sealed again, a hundred per transaction.
/// 4. Everything is opened once, to verify that it is under the new key.
/// 5. The old key is moved from `master.key` to a separate file.
struct KeyRotation {
  /// A step that has just been completed.
  enum Step: Equatable, CustomStringConvertible {
    case made(String)
    case inForce(String)
    case resealed(Int)
    case checked(Int)
    case putAside(id: String, file: String)

    var description: String {
      switch self {
      case .made(let id): "the new key \(id) is made, and stands beside the old one"
      case .inForce(let id): "every server has the key \(id); new values are sealed under it"
      case .resealed(let count): "\(count) values are sealed again"
      case .checked(let count): "all \(count) values are under the new key alone"
      case .putAside(let id, let file): "the old key \(id) is in \(file) now"
      }
    }
  }

  let keys: MasterKeyRing
  let store: any HubStore
  let data: DataDirectory
  /// Whether several servers use the store, each with its own key file.
  let isShared: Bool
  /// The time for servers to read the new key, which they check every two seconds.
  var patience = Duration.seconds(6)
  /// Called after each step; an error that it throws stops the rotation there.
  let report: (Step) throws -> Void

  /// - Parameter finishing: Whether to only complete a rotation that was begun.
  /// - Returns: The id of the active key.
  func run(finishing: Bool) async throws -> String {
    let lock = try keys.file.map { _ in try keys.lock() }
    defer { withExtendedLifetime(lock) {} }
    try keys.readAgain()
    let old = try await store.sealingKey()
    let broken = try await store.sealedValues().unopened
    guard broken.isEmpty else {
      throw CommandFailure(
        "these values open with no key that is here: \(broken.prefix(10).joined(separator: ", ")). Set "
          + "them again or delete them, or put the key that they are sealed with into master.key; then "
          + "run this again. Nothing is changed")
    }
    if keys.all.count == 1 {
      if finishing {
        throw CommandFailure(
          "there is nothing to finish: \(old) is the only master key here, and in force")
      }
      guard keys.file != nil else { throw CommandFailure(Self.outside, exitCode: .usage) }
      let new = try MasterKey()
      try keys.replace(with: [new] + keys.all)
      try report(.made(new.id))
    }
    let new = keys.all[0].id
    if old != new { try await putInForce(new) }
    try report(.inForce(new))
    while true {
      let count = try await store.resealSome(limit: 100)
      if count == 0 { break }
      try report(.resealed(count))
    }
    let counts = try await store.sealedValues()
    guard counts.unopened.isEmpty, counts.counts.keys.allSatisfy({ $0 == new }) else {
      throw CommandFailure(
        "values are left that the new key does not open; the old one stays. Run this again, and see "
          + "that no older version of belfry works on this database")
    }
    try report(.checked(counts.counts[new] ?? 0))
    guard keys.file != nil else { return new }
    for key in keys.all.dropFirst() {
      try report(.putAside(id: key.id, file: try keys.putAside(key)))
    }
    try keys.replace(with: [keys.all[0]])
    return new
  }

  private static let outside =
    "the master key comes from \(Setting.masterKey.variable) (or the setting masterKey), which only you can "
    + "change. Make a new key with `openssl rand -base64 32`, set the variable to NEW,OLD for every "
    + "server and for this command, restart the servers, run this again, and leave OLD out then. Nothing "
    + "is changed"

  private func putInForce(_ key: String) async throws {
    let limit = ContinuousClock.now + patience
    while true {
      let lacking = try await serversLacking(key)
      if lacking.isEmpty { return }
      guard ContinuousClock.now < limit else {
        throw CommandFailure(
          "these servers do not have the new key \(key): \(lacking.joined(separator: ", ")). "
            + (isShared
              ? "Copy \(keys.file ?? "master.key") to the data directory of each (for its user, mode 0600), "
              : "Let its user read \(data.masterKeyFile), ")
            + "or where \(Setting.masterKey.variable) is set, set it to NEW,OLD and restart the server. "
            + "It is read within seconds; then run this again. The old key is still in force")
      }
      try await Task.sleep(for: .milliseconds(200))
    }
  }

  /// Activates the key if no server lacks it; returns the servers that do.
  private func serversLacking(_ key: String) async throws -> [String] {
    if isShared { return try await store.changeSealingKey(to: key) }
    // Keeps a server from starting in the meantime with a key that was not checked.
    let claim = try? data.claim(for: .rotatingKey)
    defer { withExtendedLifetime(claim) {} }
    guard claim != nil || data.servedKeys.contains(key) else {
      return ["the one in \(data.path)"]
    }
    return try await store.changeSealingKey(to: key)
  }
}

import Cryptography
import Dispatch
package import Foundation
import Synchronization
import Wire

/// A file of users with the hashes of their passwords: one user a line, `name:scrypt$…`; lines that
/// begin with `#` are remarks. It is read again when it has changed, which is looked at every second.
package final class UserFile: PasswordDirectory {
  /// What is wrong with a user file.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  private struct Contents {
    var hashes: [UserName: PasswordHash] = [:]
    var stamp: Stamp?
    /// Right passwords of the last minutes, by a keyed digest, so that a client that signs in with
    /// each request does not cost a hash each time.
    var known: [UserName: (digest: [UInt8], until: Date)] = [:]
    var lookedAt = Date.distantPast
  }

  /// Tells versions of the file apart.
  private struct Stamp: Equatable {
    let modified: Date?
    let size: Int?
    let number: Int?
  }

  /// How long a right password is remembered.
  private static let memory: TimeInterval = 600
  private static let memoryLimit = 10_000
  /// How often the file is looked at, in seconds.
  private static let pause: TimeInterval = 1

  package let path: String
  private let now: @Sendable () -> Date
  private let digestKey: [UInt8]
  /// The work for a user who does not exist.
  private let dummy: PasswordHash
  private let contents = Mutex(Contents())
  private let hashing: HashingQueue
  /// Where the file is looked at and read: a slow disk must not hold the threads of requests.
  private let files = DispatchQueue(label: "belfry.user-file")

  /// - Throws: ``Fault`` when the file cannot be read or a line is not a user.
  package convenience init(
    path: String, now: @escaping @Sendable () -> Date = { Date() }
  ) throws {
    try self.init(path: path, hashing: HashingQueue(), now: now)
  }

  init(
    path: String, hashing: HashingQueue, now: @escaping @Sendable () -> Date = { Date() }
  ) throws {
    self.path = path
    self.hashing = hashing
    self.now = now
    digestKey = try SecureRandom.bytes(32)
    dummy = try PasswordHash(password: Base64URL.encode(try SecureRandom.bytes(16)))
    try refresh()
  }

  /// The users, sorted.
  package var users: [UserName] {
    contents.withLock { $0.hashes.keys.sorted { $0.text < $1.text } }
  }

  package func check(
    _ password: String, of user: UserName, from site: String, isKnown: Bool
  ) async throws(PasswordsBusy) -> [UInt8]? {
    await refreshWhenDue()
    let digest = digest(password, user)
    let (hash, isRemembered) = contents.withLock { contents -> (PasswordHash?, Bool) in
      let known = contents.known[user].map {
        $0.until > now() && ConstantTime.equal($0.digest, digest)
      }
      return (contents.hashes[user], known ?? false)
    }
    if isRemembered, let hash { return Self.fingerprint(hash) }
    let work = { @Sendable [dummy] in (hash ?? dummy).matches(password) && hash != nil }
    guard let isRight = await hashing.run(for: site, isKnown: isKnown, work) else {
      throw PasswordsBusy(retryAfter: 5)
    }
    guard isRight, let hash else { return nil }
    return contents.withLock { contents in
      // Not if the password was changed meanwhile.
      guard contents.hashes[user] == hash else { return nil }
      if contents.known.count >= Self.memoryLimit { contents.known.removeAll() }
      contents.known[user] = (digest, now().addingTimeInterval(Self.memory))
      return Self.fingerprint(hash)
    }
  }

  package func fingerprint(of user: UserName) async -> [UInt8]? {
    await refreshWhenDue()
    return contents.withLock { $0.hashes[user] }.map(Self.fingerprint)
  }

  private static func fingerprint(_ hash: PasswordHash) -> [UInt8] {
    Digest.sha256(Array(hash.description.utf8))
  }

  private func digest(_ password: String, _ user: UserName) -> [UInt8] {
    let text = Array(user.text.utf8) + [0] + Array(password.utf8)
    // Fails only when OpenSSL has no HMAC; then nothing is remembered.
    return (try? MessageAuthentication.code(of: text, key: digestKey)) ?? []
  }

  /// The first request after each second looks at the file and waits for that; others go on with what
  /// is known. A file that is being edited badly keeps the users it had.
  private func refreshWhenDue() async {
    let isDue = contents.withLock { contents in
      let now = now()
      guard abs(now.timeIntervalSince(contents.lookedAt)) >= Self.pause else { return false }
      contents.lookedAt = now
      return true
    }
    guard isDue else { return }
    await withCheckedContinuation { continuation in
      files.async { [self] in
        try? refresh()
        continuation.resume()
      }
    }
  }

  private func refresh() throws {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    let stamp = Stamp(
      modified: attributes?[.modificationDate] as? Date,
      size: (attributes?[.size] as? NSNumber)?.intValue,
      number: (attributes?[.systemFileNumber] as? NSNumber)?.intValue)
    if contents.withLock({ $0.stamp == stamp }) { return }
    let hashes = try Self.read(path)
    contents.withLock { contents in
      contents.hashes = hashes
      contents.known = [:]
      contents.stamp = stamp
    }
  }

  // MARK: The file

  private static func read(_ path: String) throws -> [UserName: PasswordHash] {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      throw Fault(
        description: "cannot read the user file \(path); make one with: belfry backend user add")
    }
    return try parse(text, path: path)
  }

  private static func parse(_ text: String, path: String) throws -> [UserName: PasswordHash] {
    var hashes: [UserName: PasswordHash] = [:]
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      guard !line.isEmpty, !line.hasPrefix("#") else { continue }
      guard let colon = line.lastIndex(of: ":"), let user = UserName(typed: String(line[..<colon])),
        let hash = PasswordHash(String(line[line.index(after: colon)...]))
      else {
        throw Fault(
          description: "\(path):\(index + 1): not a user; a line is name:hash, as "
            + "'belfry backend user add' writes it")
      }
      guard hashes.updateValue(hash, forKey: user) == nil else {
        throw Fault(description: "\(path):\(index + 1): '\(user)' stands there twice")
      }
    }
    return hashes
  }

  /// Adds a user, or gives one another password; makes the file, readable by its owner only, when
  /// there is none.
  /// - Returns: Whether the user is new.
  package static func set(
    _ password: String, of user: UserName, in path: String, cost: Int = PasswordHash.standardCost
  ) throws -> Bool {
    let line = "\(user):\(try PasswordHash(password: password, cost: cost))"
    return try edit(path) { lines in
      let old = lines.firstIndex { isLine($0, of: user) }
      if let old { lines[old] = line } else { lines.append(line) }
      return old == nil
    }
  }

  /// Takes a user out.
  /// - Returns: Whether there was one.
  package static func remove(_ user: UserName, from path: String) throws -> Bool {
    guard FileManager.default.fileExists(atPath: path) else { return false }
    return try edit(path) { lines in
      let count = lines.count
      lines.removeAll { isLine($0, of: user) }
      return lines.count < count
    }
  }

  private static func isLine(_ line: String, of user: UserName) -> Bool {
    guard !line.hasPrefix("#"), let colon = line.lastIndex(of: ":") else { return false }
    // As `parse` reads it: a name may have been typed with capitals.
    return UserName(typed: String(line[..<colon])) == user
  }

  private static func edit(_ path: String, _ change: (inout [String]) -> Bool) throws -> Bool {
    var lines: [String] = []
    if FileManager.default.fileExists(atPath: path) {
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        throw Fault(description: "cannot read the user file \(path)")
      }
      _ = try parse(text, path: path)
      lines = text.split(separator: "\n").map(String.init)
    }
    let result = change(&lines)
    // Written beside and moved into place: a server that reads meanwhile sees one or the other.
    let draft = path + ".new"
    let text = lines.map { $0 + "\n" }.joined()
    guard
      FileManager.default.createFile(
        atPath: draft, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]),
      rename(draft, path) == 0
    else { throw Fault(description: "cannot write the user file \(path)") }
    return result
  }
}

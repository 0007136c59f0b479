import Cryptography
import Dispatch
package import Foundation
import Synchronization
import Wire

/// A file of users with the hashes of their passwords: one user a line, `name:scrypt$…`; lines that
/// begin with `#` are comments. It is read again when it has changed, which is looked at every second.
///
/// Where its ``Form`` says so, each line has a remark behind the hash and a blank: what the user may do,
/// say.
package final class UserFile: PasswordDirectory {
  /// What is wrong with a user file.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  /// What a file holds.
  package struct Form: Sendable {
    /// Whether a remark is one; `nil`: lines have none.
    let isRemark: (@Sendable (String) -> Bool)?
    /// Which command writes the file.
    let command: String
    /// Whether a file that is not there has nobody in it.
    let mayBeMissing: Bool

    package init(
      command: String, mayBeMissing: Bool = false, isRemark: (@Sendable (String) -> Bool)? = nil
    ) {
      self.command = command
      self.mayBeMissing = mayBeMissing
      self.isRemark = isRemark
    }

    /// Passwords alone.
    package static let passwords = Form(command: "belfry backend user add")
  }

  private struct Line: Equatable {
    let hash: PasswordHash
    let remark: String
  }

  private struct Contents {
    var lines: [UserName: Line] = [:]
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
  private let form: Form
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
    path: String, form: Form = .passwords, now: @escaping @Sendable () -> Date = { Date() }
  ) throws {
    try self.init(path: path, form: form, hashing: HashingQueue(), now: now)
  }

  package init(
    path: String, form: Form = .passwords, hashing: HashingQueue,
    now: @escaping @Sendable () -> Date = { Date() }
  ) throws {
    self.path = path
    self.form = form
    self.hashing = hashing
    self.now = now
    digestKey = try SecureRandom.bytes(32)
    dummy = try PasswordHash(password: Base64URL.encode(try SecureRandom.bytes(16)))
    try refresh()
  }

  /// The users, sorted.
  package var users: [UserName] {
    contents.withLock { $0.lines.keys.sorted { $0.text < $1.text } }
  }

  package var hasPasswords: Bool { contents.withLock { !$0.lines.isEmpty } }

  /// What the file says of a user beside the password; `nil` for one who does not exist.
  package func remark(on user: UserName) async -> String? {
    await refreshWhenDue()
    return contents.withLock { $0.lines[user]?.remark }
  }

  package func check(
    _ password: String, of user: UserName, from site: String, isKnown: Bool
  ) async throws(PasswordsBusy) -> [UInt8]? {
    await refreshWhenDue()
    let digest = digest(password, user)
    let (hash, isRemembered) = contents.withLock { contents -> (PasswordHash?, Bool) in
      let known = contents.known[user].map { (remembered) -> Bool in
        guard let digest else { return false }
        return remembered.until > now() && ConstantTime.equal(remembered.digest, digest)
      }
      return (contents.lines[user]?.hash, known ?? false)
    }
    if isRemembered, let hash { return Self.fingerprint(hash) }
    let work = { @Sendable [dummy] in (hash ?? dummy).matches(password) && hash != nil }
    guard let isRight = await hashing.run(for: site, isKnown: isKnown, work) else {
      throw PasswordsBusy(retryAfter: 5)
    }
    guard isRight, let hash else { return nil }
    return contents.withLock { contents in
      // Not if the password was changed meanwhile.
      guard contents.lines[user]?.hash == hash else { return nil }
      if contents.known.count >= Self.memoryLimit { contents.known.removeAll() }
      if let digest { contents.known[user] = (digest, now().addingTimeInterval(Self.memory)) }
      return Self.fingerprint(hash)
    }
  }

  package func fingerprint(of user: UserName) async -> [UInt8]? {
    await refreshWhenDue()
    return contents.withLock { $0.lines[user]?.hash }.map(Self.fingerprint)
  }

  private static func fingerprint(_ hash: PasswordHash) -> [UInt8] {
    Digest.sha256(Array(hash.description.utf8))
  }

  private func digest(_ password: String, _ user: UserName) -> [UInt8]? {
    let text = Array(user.text.utf8) + [0] + Array(password.utf8)
    // Fails only when OpenSSL has no HMAC; then nothing is remembered.
    return try? MessageAuthentication.code(of: text, key: digestKey)
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
    let lines = try Self.read(path, form)
    contents.withLock { contents in
      contents.lines = lines
      contents.known = [:]
      contents.stamp = stamp
    }
  }

  // MARK: The file

  private static func read(_ path: String, _ form: Form) throws -> [UserName: Line] {
    if form.mayBeMissing, !FileManager.default.fileExists(atPath: path) { return [:] }
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      throw Fault(
        description: "cannot read the user file \(path); make one with: \(form.command)")
    }
    return try parse(text, path: path, form)
  }

  private static func parse(
    _ text: String, path: String, _ form: Form
  ) throws -> [UserName: Line] {
    var lines: [UserName: Line] = [:]
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      guard !line.isEmpty, !line.hasPrefix("#") else { continue }
      guard let colon = line.lastIndex(of: ":"), let user = UserName(typed: String(line[..<colon])),
        let found = Self.line(line[line.index(after: colon)...], form)
      else {
        throw Fault(
          description: "\(path):\(index + 1): not a user; a line is as '\(form.command)' writes it")
      }
      guard lines.updateValue(found, forKey: user) == nil else {
        throw Fault(description: "\(path):\(index + 1): '\(user)' stands there twice")
      }
    }
    return lines
  }

  private static func line(_ text: Substring, _ form: Form) -> Line? {
    guard let isRemark = form.isRemark else {
      return PasswordHash(String(text)).map { Line(hash: $0, remark: "") }
    }
    let parts = text.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, let hash = PasswordHash(String(parts[0])), isRemark(String(parts[1]))
    else { return nil }
    return Line(hash: hash, remark: String(parts[1]))
  }

  /// Adds a user, or gives one another password; makes the file, readable by its owner only, when
  /// there is none.
  /// - Returns: Whether the user is new.
  package static func set(
    _ password: String, of user: UserName, remark: String? = nil, in path: String,
    form: Form = .passwords, cost: Int = PasswordHash.standardCost
  ) throws -> Bool {
    let line =
      "\(user):\(try PasswordHash(password: password, cost: cost))"
      + (remark.map { " \($0)" } ?? "")
    return try edit(path, form) { lines in
      let old = lines.firstIndex { isLine($0, of: user) }
      if let old { lines[old] = line } else { lines.append(line) }
      return old == nil
    }
  }

  /// Takes a user out.
  /// - Returns: Whether there was one.
  package static func remove(
    _ user: UserName, from path: String, form: Form = .passwords
  ) throws -> Bool {
    guard FileManager.default.fileExists(atPath: path) else { return false }
    return try edit(path, form) { lines in
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

  private static func edit(_ path: String, _ form: Form, _ change: (inout [String]) -> Bool) throws
    -> Bool
  {
    var lines: [String] = []
    if FileManager.default.fileExists(atPath: path) {
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        throw Fault(description: "cannot read the user file \(path)")
      }
      _ = try parse(text, path: path, form)
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

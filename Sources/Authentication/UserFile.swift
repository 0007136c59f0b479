import Cryptography
package import Foundation
import Synchronization
import Wire

/// A file of users with the hashes of their passwords: one user per line, `name:scrypt$…`; lines
/// that begin with `#` are comments. It is reloaded when it has changed, which is checked every
/// second.
///
/// If its ``Form`` says so, each line has a remark after the hash and a blank, for example the
/// user's roles. Then `oidc` in place of the hash denotes a user of an OpenID provider, and the
/// name is a `UserName.key`: `subject:auth0|7f0c:oidc *=viewer`. Only that word determines the name
/// space of a line, so that no typed name can pass for a subject.
package final class UserFile: PasswordDirectory {
  /// The error in a user file.
  package struct Fault: Error, Hashable, CustomStringConvertible {
    package let description: String
  }

  /// The format of a file.
  package struct Form: Sendable {
    /// Whether a text is a valid remark; `nil` if lines have none.
    let isRemark: (@Sendable (String) -> Bool)?
    /// The command that writes the file.
    let command: String
    /// Whether a missing file counts as empty.
    let mayBeMissing: Bool
    /// Whether the valid lines of a file with errors apply. Otherwise the previous contents stay.
    let honoursGoodLines: Bool

    package init(
      command: String, mayBeMissing: Bool = false, honoursGoodLines: Bool = false,
      isRemark: (@Sendable (String) -> Bool)? = nil
    ) {
      self.command = command
      self.mayBeMissing = mayBeMissing
      self.honoursGoodLines = honoursGoodLines
      self.isRemark = isRemark
    }

    /// A file of passwords without remarks.
    package static let passwords = Form(command: "belfry backend user add")
  }

  private struct Line: Equatable {
    /// The hash; `nil` if an OpenID provider authenticates the user.
    let hash: PasswordHash?
    let remark: String
  }

  private struct Contents {
    var lines: [UserName: Line] = [:]
    /// The error in the present file.
    var fault: Fault?
    var stamp: Stamp?
    /// Recent correct passwords as keyed digests, so that a client that signs in with each request
    /// does not cost a hash each time.
    var known: [UserName: (digest: [UInt8], until: Date)] = [:]
    var lookedAt = Date.distantPast
    var isLooking = false
  }

  /// A stamp that distinguishes versions of the file.
  private struct Stamp: Equatable {
    let modified: Date?
    let size: Int?
    let number: Int?
  }

  /// The time for which a correct password is cached, in seconds.
  private static let memory: TimeInterval = 600
  private static let memoryLimit = 10_000
  /// The interval at which the file is checked for changes, in seconds.
  private static let pause: TimeInterval = 1

  package let path: String
  private let form: Form
  private let report: @Sendable (Fault?) -> Void
  private let now: @Sendable () -> Date
  private let digestKey: [UInt8]
  /// A hash that makes checks for unknown users take as long.
  private let dummy: PasswordHash
  private let contents = Mutex(Contents())
  private let hashing: HashingQueue

  /// - Parameter report: Called on any thread when a change of the file has introduced or removed
  ///   errors.
  /// - Throws: ``Fault`` if the file cannot be read or a line is invalid.
  package convenience init(
    path: String, form: Form = .passwords, now: @escaping @Sendable () -> Date = { Date() },
    report: @escaping @Sendable (Fault?) -> Void = { _ in }
  ) throws {
    try self.init(path: path, form: form, hashing: HashingQueue(), now: now, report: report)
  }

  package init(
    path: String, form: Form = .passwords, hashing: HashingQueue,
    now: @escaping @Sendable () -> Date = { Date() },
    report: @escaping @Sendable (Fault?) -> Void = { _ in }
  ) throws {
    self.path = path
    self.form = form
    self.hashing = hashing
    self.report = report
    self.now = now
    digestKey = try SecureRandom.bytes(32)
    dummy = try PasswordHash(password: Base64URL.encode(try SecureRandom.bytes(16)))
    refresh()
    if let fault = contents.withLock({ $0.fault }) { throw fault }
  }

  /// The users, sorted.
  package var users: [UserName] {
    contents.withLock { $0.lines.keys.sorted { $0.text < $1.text } }
  }

  package func hasPasswords() async -> Bool {
    await refreshWhenDue()
    return contents.withLock { $0.lines.values.contains { $0.hash != nil } }
  }

  /// The error in the file; `nil` for a valid one.
  package func fault() async -> Fault? {
    await refreshWhenDue()
    return contents.withLock { $0.fault }
  }

  /// The remark on a user; `nil` for an unknown user.
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
      // Not if the password was changed in the meantime.
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
    // Fails only if OpenSSL lacks HMAC; then nothing is cached.
    return try? MessageAuthentication.code(of: text, key: digestKey)
  }

  /// Checks the file if it is due. The first request after each second waits for the check; others
  /// use the present contents. The check has a separate thread, so that a slow disk does not block
  /// those of requests.
  private func refreshWhenDue() async {
    let isDue = contents.withLock { contents in
      let now = now()
      guard !contents.isLooking, abs(now.timeIntervalSince(contents.lookedAt)) >= Self.pause
      else { return false }
      contents.lookedAt = now
      contents.isLooking = true
      return true
    }
    guard isDue else { return }
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [self] in
        refresh()
        contents.withLock { $0.isLooking = false }
        continuation.resume()
      }
    }
  }

  private func refresh() {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    let stamp = Stamp(
      modified: attributes?[.modificationDate] as? Date,
      size: (attributes?[.size] as? NSNumber)?.intValue,
      number: (attributes?[.systemFileNumber] as? NSNumber)?.intValue)
    if contents.withLock({ $0.stamp == stamp }) { return }
    let (lines, fault) = Self.read(path, form)
    let isNews = contents.withLock { contents in
      let isNews = contents.stamp != nil && contents.fault != fault
      contents.fault = fault
      contents.stamp = stamp
      if fault == nil || form.honoursGoodLines {
        contents.lines = lines
        contents.known = [:]
      }
      return isNews
    }
    if isNews { report(fault) }
  }

  // MARK: The file

  /// - Returns: The users of the valid lines, and the error in the first invalid one.
  private static func read(
    _ path: String, _ form: Form
  ) -> (lines: [UserName: Line], fault: Fault?) {
    if form.mayBeMissing, !FileManager.default.fileExists(atPath: path) { return ([:], nil) }
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      return (
        [:],
        Fault(description: "cannot read the user file \(path); make one with: \(form.command)")
      )
    }
    return parse(text, path: path, form)
  }

  private static func parse(
    _ text: String, path: String, _ form: Form
  ) -> (lines: [UserName: Line], fault: Fault?) {
    var lines: [UserName: Line] = [:]
    var doubtful: Set<UserName> = []
    var fault: Fault?
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      guard !line.isEmpty, !line.hasPrefix("#") else { continue }
      guard let (user, found) = Self.user(line, form) else {
        fault =
          fault
          ?? Fault(
            description:
              "\(path):\(index + 1): not a user; a line is as '\(form.command)' writes it")
        continue
      }
      if lines.updateValue(found, forKey: user) != nil {
        doubtful.insert(user)
        fault =
          fault ?? Fault(description: "\(path):\(index + 1): '\(user)' stands there twice")
      }
    }
    // Of two lines for one user it is unclear which one is meant, so neither applies.
    for user in doubtful { lines[user] = nil }
    return (lines, fault)
  }

  /// The word in place of a hash.
  private static let providerWord = "oidc"

  private static func user(_ line: Substring, _ form: Form) -> (UserName, Line)? {
    guard let colon = line.lastIndex(of: ":") else { return nil }
    let name = String(line[..<colon])
    let parts = line[line.index(after: colon)...].split(separator: " ", maxSplits: 1)
    guard let word = parts.first, parts.count == (form.isRemark == nil ? 1 : 2) else { return nil }
    let remark = parts.count == 2 ? String(parts[1]) : ""
    guard form.isRemark?(remark) ?? true else { return nil }
    if form.isRemark != nil, word == providerWord {
      guard let user = UserName(key: name), [.subject, .email].contains(user.kind) else {
        return nil
      }
      return (user, Line(hash: nil, remark: remark))
    }
    guard let user = UserName(typed: name), let hash = PasswordHash(String(word)) else {
      return nil
    }
    return (user, Line(hash: hash, remark: remark))
  }

  /// Adds a user, or changes their password; creates the file, readable only by its owner, if there
  /// is none.
  ///
  /// - Parameter password: The password; `nil` for a user of an OpenID provider.
  /// - Returns: Whether the user is new.
  package static func set(
    _ password: String?, of user: UserName, remark: String? = nil, in path: String,
    form: Form = .passwords, cost: Int = PasswordHash.standardCost
  ) throws -> Bool {
    let proof =
      try password.map { "\(try PasswordHash(password: $0, cost: cost))" } ?? providerWord
    let line = "\(user):\(proof)" + (remark.map { " \($0)" } ?? "")
    return try edit(path, form) { lines in
      let old = lines.firstIndex { self.user($0[...], form)?.0 == user }
      if let old { lines[old] = line } else { lines.append(line) }
      return old == nil
    }
  }

  /// Removes a user.
  /// - Returns: Whether the user existed.
  package static func remove(
    _ user: UserName, from path: String, form: Form = .passwords
  ) throws -> Bool {
    guard FileManager.default.fileExists(atPath: path) else { return false }
    return try edit(path, form) { lines in
      let count = lines.count
      lines.removeAll { self.user($0[...], form)?.0 == user }
      return lines.count < count
    }
  }

  private static func edit(_ path: String, _ form: Form, _ change: (inout [String]) -> Bool) throws
    -> Bool
  {
    var lines: [String] = []
    if FileManager.default.fileExists(atPath: path) {
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        throw Fault(description: "cannot read the user file \(path)")
      }
      if let fault = parse(text, path: path, form).fault { throw fault }
      lines = text.split(separator: "\n").map(String.init)
    }
    let result = change(&lines)
    // Written to a draft that is renamed, so that a server that reads meanwhile sees either
    // version.
    let draft = path + ".new"
    let text = lines.map { $0 + "\n" }.joined()
    guard let file = FileHandle.newPrivate(draft),
      (try? file.write(contentsOf: Data(text.utf8))) != nil, rename(draft, path) == 0
    else { throw Fault(description: "cannot write the user file \(path)") }
    return result
  }
}

import Cryptography
package import Foundation
import Synchronization
import Wire

/// A file of users with the hashes of their passwords: one user a line, `name:scrypt$…`; lines that
/// begin with `#` are comments. It is read again when it has changed, which is checked every
/// second.
///
/// Where its ``Form`` says so, each line has a remark behind the hash and a blank: what the user
/// may do, say. Then `oidc` in place of the hash stands for somebody whom an OpenID provider names,
/// and the name is a `UserName.key`: `subject:auth0|7f0c:oidc *=viewer`. Which name space a line is
/// of depends on that word alone, so that no typed name passes for a subject.
package final class UserFile: PasswordDirectory {
  /// What is wrong with a user file.
  package struct Fault: Error, Hashable, CustomStringConvertible {
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
    /// Whether of a file that has been edited badly the good lines count. Else all stays as it was.
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

    /// Passwords alone.
    package static let passwords = Form(command: "belfry backend user add")
  }

  private struct Line: Equatable {
    /// `nil`: an OpenID provider says who it is.
    let hash: PasswordHash?
    let remark: String
  }

  private struct Contents {
    var lines: [UserName: Line] = [:]
    /// What is wrong with the file as it is now.
    var fault: Fault?
    var stamp: Stamp?
    /// Right passwords of the last minutes, by a keyed digest, so that a client that signs in with
    /// each request does not cost a hash each time.
    var known: [UserName: (digest: [UInt8], until: Date)] = [:]
    var lookedAt = Date.distantPast
    var isLooking = false
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
  /// How often the file is checked for changes, in seconds.
  private static let pause: TimeInterval = 1

  package let path: String
  private let form: Form
  private let report: @Sendable (Fault?) -> Void
  private let now: @Sendable () -> Date
  private let digestKey: [UInt8]
  /// The work for a user who does not exist.
  private let dummy: PasswordHash
  private let contents = Mutex(Contents())
  private let hashing: HashingQueue

  /// - Parameter report: Hears, from any thread, when a change of the file has made it a bad one,
  ///   or a good one again.
  /// - Throws: ``Fault`` when the file cannot be read or a line is not a user.
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

  /// What is wrong with the file; `nil` for a good one.
  package func fault() async -> Fault? {
    await refreshWhenDue()
    return contents.withLock { $0.fault }
  }

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

  /// The first request after each second looks at the file and waits for that; others go on with
  /// what is known. The look has a thread of its own: a slow disk must not hold those of requests.
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

  /// - Returns: The users of the lines that can be read, and what is wrong with the first of the
  ///   others.
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
    // Of two lines nobody knows which one was meant.
    for user in doubtful { lines[user] = nil }
    return (lines, fault)
  }

  /// In place of a hash.
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

  /// Adds a user, or gives one another password; makes the file, readable by its owner only, when
  /// there is none.
  ///
  /// - Parameter password: `nil` for somebody whom an OpenID provider names.
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

  /// Takes a user out.
  /// - Returns: Whether there was one.
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
    // Written beside and moved into place: a server that reads meanwhile sees one or the other.
    let draft = path + ".new"
    let text = lines.map { $0 + "\n" }.joined()
    guard let file = FileHandle.newPrivate(draft),
      (try? file.write(contentsOf: Data(text.utf8))) != nil, rename(draft, path) == 0
    else { throw Fault(description: "cannot write the user file \(path)") }
    return result
  }
}

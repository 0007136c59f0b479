import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The master keys that open a store's secrets: usually one; while it is being replaced the new
/// one, followed by the old one.
///
/// In text form, in a file or a setting, the newest comes first, separated by white space or
/// commas.
package final class MasterKeyRing: Sendable {
  /// Maximum number of keys; more are a mistake.
  package static let limit = 8

  /// The file of the keys; `nil` for keys that are supplied otherwise.
  package let file: String?
  private let keys: Mutex<[MasterKey]>

  /// A ring of one key that is supplied by the caller.
  package init(_ key: MasterKey) {
    file = nil
    keys = Mutex([key])
  }

  /// - Parameter origin: The origin of the text, for the error.
  package init(text: String, origin: String) throws(CryptographyError) {
    file = nil
    keys = Mutex(try Self.read(text, origin: origin))
  }

  /// Reads the key file.
  /// - Throws: ``CryptographyError``: file when it is missing or unreadable, malformed when it has
  ///   other contents.
  package init(file: String) throws(CryptographyError) {
    self.file = file
    keys = Mutex(try Self.read(file: file))
  }

  /// The newest first; never empty.
  package var all: [MasterKey] { keys.withLock { $0 } }
  /// The keys in the form of a file.
  package var text: String { Self.text(all) }
  private static func text(_ keys: [MasterKey]) -> String { keys.map(\.line).joined() }
  package var ids: [String] { all.map(\.id) }

  package subscript(id: String) -> MasterKey? { all.first { $0.id == id } }

  /// Reloads the file; keys supplied otherwise are kept.
  /// - Returns: Whether the keys have changed.
  /// - Throws: ``CryptographyError`` when the file cannot be read; nothing changes then.
  @discardableResult
  package func readAgain() throws(CryptographyError) -> Bool {
    guard let file else { return false }
    let found = try Self.read(file: file)
    return keys.withLock { keys in
      defer { keys = found }
      return keys.map(\.bytes) != found.map(\.bytes)
    }
  }

  private static func read(file: String) throws(CryptographyError) -> [MasterKey] {
    guard let text = try MasterKey.text(ofFile: file) else { throw MasterKey.missing(file) }
    return try read(text, origin: "the file \(file)")
  }

  private static func read(_ text: String, origin: String) throws(CryptographyError) -> [MasterKey]
  {
    let words = text.split { $0.isWhitespace || $0 == "," }
    // One key may contain white space.
    if words.count < 2 || (try? MasterKey(text: text, origin: origin)) != nil {
      return [try MasterKey(text: text, origin: origin)]
    }
    var keys: [MasterKey] = []
    for word in words {
      let key = try MasterKey(text: String(word), origin: origin)
      if !keys.contains(where: { $0.bytes == key.bytes }) { keys.append(key) }
    }
    guard keys.count <= limit else {
      throw CryptographyError(
        .malformed, "There are \(keys.count) master keys in \(origin); \(limit) are the most.")
    }
    return keys
  }

  // MARK: Changes of the file

  /// A lock that one process at a time can hold, so that two do not replace each other's keys. It
  /// is released with the value, or with the process.
  package func lock() throws(CryptographyError) -> Lock {
    guard let file else { throw CryptographyError(.file, "There is no file of keys to lock.") }
    let descriptor = open(file + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw MasterKey.failure("lock the master key file", file, errno) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw CryptographyError(.file, "Another process is changing \(file); let it end first.")
    }
    return Lock(descriptor: descriptor)
  }

  package final class Lock: Sendable {
    private let descriptor: Int32
    fileprivate init(descriptor: Int32) { self.descriptor = descriptor }
    deinit { close(descriptor) }
  }

  /// Replaces the keys in the file atomically. The caller must hold the ``lock()``.
  package func replace(with keys: [MasterKey]) throws(CryptographyError) {
    guard let file else { throw CryptographyError(.file, "There is no file of keys to change.") }
    try Self.put(keys, in: file)
    self.keys.withLock { $0 = keys }
  }

  /// Saves a key in a file of its own beside the others.
  /// - Returns: The path of the file.
  package func putAside(_ key: MasterKey) throws(CryptographyError) -> String {
    guard let file else { throw CryptographyError(.file, "There is no file of keys to change.") }
    try Self.put([key], in: "\(file).\(key.id)")
    return "\(file).\(key.id)"
  }

  private static func put(_ keys: [MasterKey], in file: String) throws(CryptographyError) {
    // A symbolic link is preserved, and its target is replaced.
    let path = realpath(file, nil).map { pointer in
      defer { free(pointer) }
      return String(cString: pointer)
    }
    let target = path ?? file
    let draft = target + ".new"
    unlink(draft)
    defer { unlink(draft) }
    try MasterKey.write(text(keys), toNew: draft)
    guard rename(draft, target) == 0 else {
      throw MasterKey.failure("write the master key file", target, errno)
    }
    try MasterKey.keepName(of: target)
  }
}

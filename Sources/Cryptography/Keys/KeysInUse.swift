import Synchronization

/// The private keys that were read and are in use, each in memory once: many hubs may send with the
/// same one, and OpenSSL takes longer to read a key than to sign with it.
final class KeysInUse: Sendable {
  private struct Entry {
    weak var handle: KeyHandle?
  }

  private struct Entries {
    /// By the SHA-256 of what was read.
    var all: [[UInt8]: Entry] = [:]
    /// The number of entries at which those of keys that have gone are dropped.
    var limit = 64
  }

  static let shared = KeysInUse()

  private let entries = Mutex(Entries())

  /// Parses a private key of any kind from PKCS#8 or a kind's own DER form, unless it is in use.
  func handle(privateDER der: [UInt8]) -> KeyHandle? {
    let name = Digest.sha256(der)
    if let known = entries.withLock({ $0.all[name]?.handle }) { return known }
    guard let handle = KeyHandle(privateDER: der) else { return nil }
    return entries.withLock { entries in
      // Another thread may have read it meanwhile.
      if let known = entries.all[name]?.handle { return known }
      if entries.all.count >= entries.limit {
        entries.all = entries.all.filter { $0.value.handle != nil }
        entries.limit = max(64, 2 * entries.all.count)
      }
      entries.all[name] = Entry(handle: handle)
      return handle
    }
  }
}

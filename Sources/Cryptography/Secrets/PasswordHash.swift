import COpenSSL
import Wire

/// The stored form of a password: its scrypt hash (RFC 7914) with a salt of its own.
///
/// Its text is `scrypt$15$8$1$salt$hash`: the logarithm of the cost N, the block size r, the
/// parallelism p, salt and hash in base64url. Another cost can be chosen later; old hashes keep
/// theirs.
package struct PasswordHash: Hashable, Sendable, LosslessStringConvertible {
  private static let word = "scrypt"
  /// 2^15 blocks of 1 KiB: 32 MiB and some 80 ms for each attempt (OWASP recommends 16 MiB).
  package static let standardCost = 15
  private static let saltCount = 16
  private static let hashCount = 32

  private let cost: Int
  private let blockSize: Int
  private let parallelism: Int
  private let salt: [UInt8]
  private let hash: [UInt8]

  /// - Parameter cost: The logarithm of N, 10 to 20; tests use a small one.
  package init(password: String, cost: Int = standardCost) throws(CryptographyError) {
    guard (10...20).contains(cost) else {
      throw CryptographyError(.unsupported, "The cost of a password hash is 10 to 20, not \(cost).")
    }
    self.cost = cost
    blockSize = 8
    parallelism = 1
    salt = try SecureRandom.bytes(Self.saltCount)
    guard
      let hash = Self.derive(
        password, salt: salt, cost: cost, blockSize: blockSize, parallelism: parallelism)
    else { throw .engine("hash a password") }
    self.hash = hash
  }

  /// Parses ``description``; `nil` for anything else, and for costs that would exhaust the machine.
  package init?(_ text: String) {
    let parts = text.split(separator: "$", omittingEmptySubsequences: false)
    guard parts.count == 6, parts[0] == Self.word, let cost = Int(parts[1]),
      let blockSize = Int(parts[2]), let parallelism = Int(parts[3]), (10...20).contains(cost),
      (1...32).contains(blockSize), (1...16).contains(parallelism),
      blockSize << cost <= 1 << 20,  // 128 MiB
      let salt = Base64URL.decode(parts[4]), (8...64).contains(salt.count),
      let hash = Base64URL.decode(parts[5]), hash.count == Self.hashCount
    else { return nil }
    self.cost = cost
    self.blockSize = blockSize
    self.parallelism = parallelism
    self.salt = salt
    self.hash = hash
  }

  package var description: String {
    "\(Self.word)$\(cost)$\(blockSize)$\(parallelism)$\(Base64URL.encode(salt))$"
      + Base64URL.encode(hash)
  }

  /// Whether the hash is this password's. Takes as long as creating it; compares in constant time.
  package func matches(_ password: String) -> Bool {
    guard
      let other = Self.derive(
        password, salt: salt, cost: cost, blockSize: blockSize, parallelism: parallelism)
    else { return false }
    return ConstantTime.equal(hash, other)
  }

  /// Derives a key of 32 bytes from a password, for sealing: scrypt with r = 8 and p = 1.
  /// - Parameters:
  ///   - salt: At least 16 bytes, of their own for each use.
  ///   - cost: The logarithm of N, 10 to 17; 17 takes 128 MiB.
  package static func key(
    from password: String, salt: [UInt8], cost: Int
  ) throws(CryptographyError) -> [UInt8] {
    guard (10...17).contains(cost) else {
      throw CryptographyError(.unsupported, "The cost of a key is 10 to 17, not \(cost).")
    }
    guard let key = derive(password, salt: salt, cost: cost, blockSize: 8, parallelism: 1) else {
      throw .engine("derive a key from a password")
    }
    return key
  }

  private static func derive(
    _ password: String, salt: [UInt8], cost: Int, blockSize: Int, parallelism: Int
  ) -> [UInt8]? {
    // With the terminating NUL there is an address even for an empty password.
    let text = Array(password.utf8CString)
    var hash = [UInt8](repeating: 0, count: hashCount)
    let memory = UInt64(256 << 20)
    let code = EVP_PBE_scrypt(
      text, text.count - 1, salt, salt.count, UInt64(1) << UInt64(cost), UInt64(blockSize),
      UInt64(parallelism), memory, &hash, hash.count)
    OpenSSLErrors.drain()
    return code == 1 ? hash : nil
  }
}

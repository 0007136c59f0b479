#if canImport(CryptoKit)
  import CryptoKit
  import Foundation
#else
  import COpenSSL
#endif

/// A key for HMAC-SHA-256 (RFC 2104): CryptoKit on Apple systems, OpenSSL elsewhere, where the
/// blocks that depend on the key alone are hashed once.
package final class SigningKey: Sendable {
  /// The 32 bytes of a code, as four words: a vector of bytes takes fifty times as long to compare.
  package struct Code: Hashable, Sendable {
    private var (first, second, third, fourth): (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    fileprivate init() {}

    /// - Parameter bytes: Exactly 32.
    init(_ bytes: UnsafeRawBufferPointer) {
      precondition(bytes.count == 32)
      withUnsafeMutableBytes(of: &self) { $0.copyMemory(from: bytes) }
    }

    package var bytes: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }

    /// Takes the same time wherever the two differ.
    func isEqual(to other: Code) -> Bool {
      (first ^ other.first) | (second ^ other.second) | (third ^ other.third)
        | (fourth ^ other.fourth) == 0
    }
  }

  #if canImport(CryptoKit)
    private let key: SymmetricKey

    package init(_ key: some Sequence<UInt8>) {
      self.key = SymmetricKey(data: Array(key))
    }

    /// The code of the concatenated parts.
    package func code(of parts: ArraySlice<UInt8>...) -> Code {
      var hash = HMAC<SHA256>(key: key)
      for part in parts { part.withUnsafeBytes { hash.update(bufferPointer: $0) } }
      return hash.finalize().withUnsafeBytes { Code($0) }
    }
  #else
    // Both are only read after init: each code is made with a copy.
    private nonisolated(unsafe) let inner: OpaquePointer
    private nonisolated(unsafe) let outer: OpaquePointer

    package init(_ key: some Sequence<UInt8>) {
      var block = Array(key)
      if block.count > 64 {
        block = Self.hash(block)
      }
      block += repeatElement(0, count: 64 - block.count)
      inner = Self.context(block.map { $0 ^ 0x36 })
      outer = Self.context(block.map { $0 ^ 0x5C })
    }

    deinit {
      EVP_MD_CTX_free(inner)
      EVP_MD_CTX_free(outer)
    }

    /// The code of the concatenated parts.
    package func code(of parts: ArraySlice<UInt8>...) -> Code {
      var code = Code()
      withUnsafeMutableBytes(of: &code) { code in
        let bytes = code.bindMemory(to: UInt8.self).baseAddress
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        Self.check(EVP_MD_CTX_copy_ex(context, inner))
        for part in parts {
          part.withUnsafeBytes { Self.check(EVP_DigestUpdate(context, $0.baseAddress, $0.count)) }
        }
        Self.check(EVP_DigestFinal_ex(context, bytes, nil))
        Self.check(EVP_MD_CTX_copy_ex(context, outer))
        Self.check(EVP_DigestUpdate(context, bytes, code.count))
        Self.check(EVP_DigestFinal_ex(context, bytes, nil))
      }
      return code
    }

    private static func context(_ block: [UInt8]) -> OpaquePointer {
      guard let context = EVP_MD_CTX_new() else { fatalError(failure) }
      check(EVP_DigestInit_ex(context, EVP_sha256(), nil))
      check(EVP_DigestUpdate(context, block, block.count))
      return context
    }

    /// A key that is longer than a block counts as its hash.
    private static func hash(_ key: [UInt8]) -> [UInt8] {
      let context = context(key)
      defer { EVP_MD_CTX_free(context) }
      var digest = [UInt8](repeating: 0, count: 32)
      check(EVP_DigestFinal_ex(context, &digest, nil))
      return digest
    }

    private static let failure = "OpenSSL cannot compute HMAC-SHA-256"

    /// OpenSSL fails only without SHA-256 or memory: then no token may be minted or accepted.
    private static func check(_ result: Int32) { precondition(result == 1, failure) }
  #endif
}

/// A digest to tell byte strings apart: equal strings have equal digests, and collisions cannot be
/// found.
///
/// - Returns: 32 bytes, HMAC-SHA-256 under a publicly known key.
package func digest(of message: [UInt8]) -> [UInt8] {
  digestKey.code(of: message[...]).bytes
}

private let digestKey = SigningKey("belfry".utf8)

// The declarations that the SDK uses of CryptoKit, as in the iOS SDK, so that its branches for Apple's systems are
// compiled elsewhere, too. Nothing here computes anything; see UIKit.swift.

public import Foundation

public struct SymmetricKey: Sendable {
  public init(data: some ContiguousBytes) {}
}

public struct SHA256Digest: Sequence, Sendable {
  public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    fatalError()
  }
}

public protocol HashFunction {}

public struct SHA256: HashFunction, Sendable {
  public static func hash(data: some DataProtocol) -> SHA256Digest { fatalError() }
}

public struct HashedAuthenticationCode<H: HashFunction>: Sequence, Sendable {
  public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    fatalError()
  }
}

public struct HMAC<H: HashFunction> {
  public init(key: SymmetricKey) {}
  public static func authenticationCode(
    for data: some DataProtocol, using key: SymmetricKey
  ) -> HashedAuthenticationCode<H> { fatalError() }
  public mutating func update(bufferPointer: UnsafeRawBufferPointer) {}
  public func finalize() -> HashedAuthenticationCode<H> { fatalError() }
}

public enum AES {
  public enum GCM {
    public struct Nonce: Sendable {
      public init(data: some DataProtocol) throws {}
    }
    public struct SealedBox: Sendable {
      public init(nonce: Nonce, ciphertext: some DataProtocol, tag: some DataProtocol) throws {}
      public var ciphertext: Data { fatalError() }
      public var tag: Data { fatalError() }
    }
    public static func seal(
      _ message: some DataProtocol, using key: SymmetricKey, nonce: Nonce? = nil,
      authenticating authenticatedData: some DataProtocol
    ) throws -> SealedBox { fatalError() }
    public static func open(
      _ sealedBox: SealedBox, using key: SymmetricKey,
      authenticating authenticatedData: some DataProtocol
    ) throws -> Data { fatalError() }
  }
}

public enum ChaChaPoly {
  public struct Nonce: Sendable {
    public init(data: some DataProtocol) throws {}
  }
  public struct SealedBox: Sendable {
    public init(nonce: Nonce, ciphertext: some DataProtocol, tag: some DataProtocol) throws {}
    public var ciphertext: Data { fatalError() }
    public var tag: Data { fatalError() }
  }
  public static func seal(
    _ message: some DataProtocol, using key: SymmetricKey, nonce: Nonce? = nil,
    authenticating authenticatedData: some DataProtocol
  ) throws -> SealedBox { fatalError() }
  public static func open(
    _ sealedBox: SealedBox, using key: SymmetricKey,
    authenticating authenticatedData: some DataProtocol
  ) throws -> Data { fatalError() }
}

public struct SharedSecret: Sendable {
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    fatalError()
  }
}

public enum Curve25519 {
  public enum KeyAgreement {
    public struct PublicKey: Sendable {
      public init(rawRepresentation: some ContiguousBytes) throws {}
      public var rawRepresentation: Data { fatalError() }
    }
    public struct PrivateKey: Sendable {
      public init() {}
      public init(rawRepresentation: some ContiguousBytes) throws {}
      public var publicKey: PublicKey { fatalError() }
      public var rawRepresentation: Data { fatalError() }
      public func sharedSecretFromKeyAgreement(
        with publicKeyShare: PublicKey
      ) throws -> SharedSecret { fatalError() }
    }
  }
}

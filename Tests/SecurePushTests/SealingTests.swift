import Foundation
import NotificationHubs
import Testing
import Wire

@testable import SecurePush

@Suite("Payloads sealed for one device")
struct SealingTests {
  private let ring: SealingKeyRing
  private let recipient: SealingRecipient
  private let secret = Data("The account balance is 12 345,67 €".utf8)

  init() throws {
    ring = try SealingKeyRing(at: Date(timeIntervalSince1970: 1_700_000_000))
    recipient = SealingRecipient(
      installationID: "phone-1", publicKey: ring.current.publicKey)
  }

  @Test("the device opens what was sealed for it", arguments: HPKESuite.allCases)
  func roundTrip(_ suite: HPKESuite) throws {
    for payload in [Data(), Data([0]), secret, Data(repeating: 0xFF, count: 100_000)] {
      let sealed = try SecurePush.seal(payload, id: "m1", for: recipient, suite: suite)
      let travelled = try #require(SealedPayload(sealed.description))
      #expect(travelled == sealed)
      #expect(sealed.description.utf8.count == SealedPayload.textCount(payload: payload.count))
      #expect(try ring.open(travelled, id: "m1", installationID: "phone-1") == payload)
    }
  }

  @Test("the same payload is never sealed to the same bytes twice")
  func fresh() throws {
    let first = try SecurePush.seal(secret, id: "m1", for: recipient)
    #expect(try SecurePush.seal(secret, id: "m1", for: recipient) != first)
  }

  @Test("under another message id, on another device or changed, it does not open")
  func binding() throws {
    let sealed = try SecurePush.seal(secret, id: "m1", for: recipient)
    #expect(throws: SecurePushError.doesNotOpen) {
      try ring.open(sealed, id: "m2", installationID: "phone-1")
    }
    #expect(throws: SecurePushError.doesNotOpen) {
      try ring.open(sealed, id: "m1", installationID: "phone-2")
    }
    #expect(throws: SecurePushError.doesNotOpen) {
      // Where id and installation meet is part of what is bound.
      try ring.open(sealed, id: "m1p", installationID: "hone-1")
    }
    var bytes = try #require(Base64URL.decode(sealed.description))
    for index in bytes.indices {
      bytes[index] ^= 1
      if let changed = SealedPayload(Base64URL.encode(bytes)) {
        #expect(throws: SecurePushError.self) {
          try ring.open(changed, id: "m1", installationID: "phone-1")
        }
      }
      bytes[index] ^= 1
    }
  }

  @Test("what is no sealed payload is refused without a trap")
  func malformed() throws {
    let sealed = try SecurePush.seal(secret, id: "m1", for: recipient).description
    for text in [
      "", "A", "!!!!", "\(sealed)=", String(sealed.prefix(70)), sealed.replacing("A", with: "+"),
      "A" + sealed, String(repeating: "é", count: 90),
    ] where text != sealed {
      if let payload = SealedPayload(text) {
        #expect(throws: SecurePushError.self) {
          try ring.open(payload, id: "m1", installationID: "phone-1")
        }
      }
    }
    #expect(SealedPayload(String(sealed.prefix(70))) == nil)
  }

  @Test("a public key that is none is refused")
  func badKeys() throws {
    #expect(SealingPublicKey("x25519.AAAA") == nil)
    #expect(SealingPublicKey("p256.\(ring.current.publicKey)") == nil)
    #expect(SealingPublicKey("") == nil)
    let zero = try #require(SealingPublicKey("x25519." + String(repeating: "A", count: 43)))
    #expect(throws: SecurePushError.malformed) {
      try SecurePush.seal(
        secret, id: "m1", for: SealingRecipient(installationID: "phone-1", publicKey: zero))
    }
  }

  // MARK: Keys

  @Test("after a rotation the old key still opens what was on its way, until it falls out")
  func rotation() throws {
    var ring = ring
    let sealed = try SecurePush.seal(secret, id: "m1", for: recipient)
    for turn in 1...SealingKeyRing.previousLimit {
      try ring.rotate(at: Date(timeIntervalSince1970: 1_700_000_000 + Double(turn)))
      #expect(ring.current.publicKey != recipient.publicKey)
      #expect(try ring.open(sealed, id: "m1", installationID: "phone-1") == secret)
    }
    try ring.rotate()
    #expect(throws: SecurePushError.unknownKey) {
      try ring.open(sealed, id: "m1", installationID: "phone-1")
    }
  }

  @Test("a device that lost its keys is told to fetch the payload instead")
  func lostKeys() throws {
    let sealed = try SecurePush.seal(secret, id: "m1", for: recipient)
    let newPhone = try SealingKeyRing()
    #expect(throws: SecurePushError.unknownKey) {
      try newPhone.open(sealed, id: "m1", installationID: "phone-1")
    }
  }

  @Test("a ring survives its storage, and damaged storage is refused")
  func storage() throws {
    var ring = ring
    try ring.rotate(at: Date(timeIntervalSince1970: 1_700_000_500))
    let stored = try ring.storage()
    let read = try SealingKeyRing(storage: stored)
    #expect(read.current.publicKey == ring.current.publicKey)
    #expect(read.previous.map(\.publicKey) == ring.previous.map(\.publicKey))
    #expect(read.rotatedAt == ring.rotatedAt)
    #expect(read.age(at: Date(timeIntervalSince1970: 1_700_000_560)) == 60)
    for damaged in [
      Data(), Data([1]), stored.dropLast(), stored + [0], Data([2]) + stored.dropFirst(),
      stored + Data(repeating: 0, count: 32 * 4),
    ] {
      #expect(throws: SecurePushError.damagedKeyRing) { try SealingKeyRing(storage: Data(damaged)) }
    }
  }

  @Test("the public key travels with the installation as a push variable")
  func installation() throws {
    var installation = Installation(
      installationID: "phone-1", platform: .apns, pushChannel: .handle("AA"))
    #expect(SealingRecipient(installation) == nil)
    installation.sealingKey = ring.current.publicKey
    #expect(
      installation.pushVariables["securePushKey"] == ring.current.publicKey.description)
    #expect(SealingRecipient(installation) == recipient)
    installation.pushVariables["securePushKey"] = "of another kind"
    #expect(SealingRecipient(installation) == nil)
  }
}

import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("Shared access signatures (spec sas.md)")
struct SharedAccessSignatureTests {
  static let k1 = "xhJ+0Yb3/Vq9dK2mRz7LwT5uGc8NaPfE1sOiQe4Ht6U="
  static let k2 = "3Zk8Qd1v+LrXo5/TbYpW7nMj0CsEfUgHi2KaNwR9x6A="
  static let k3 = "p@ss wörd&key=+/%25\""
  static let full = "DefaultFullSharedAccessSignature"
  static let listen = "DefaultListenSharedAccessSignature"

  struct Vector: Sendable, CustomTestStringConvertible {
    let name: String
    let key: String
    let keyName: String
    let resource: String
    let token: String
    let base64: String
    var testDescription: String { name }
  }

  static let vectors: [Vector] = [
    Vector(
      name: "V1", key: k1, keyName: full,
      resource: "http://contoso-ns.servicebus.windows.net/hub1/messages/",
      token:
        "SharedAccessSignature sr=http%3a%2f%2fcontoso-ns.servicebus.windows.net%2fhub1%2fmessages%2f&sig=%2fSZyAyhTu%2bjVXltx9U3KK23hb1EAc9z6kPAAnRPZY%2fQ%3d&se=1924991999&skn=DefaultFullSharedAccessSignature",
      base64: "/SZyAyhTu+jVXltx9U3KK23hb1EAc9z6kPAAnRPZY/Q="),
    Vector(
      name: "V2", key: k1, keyName: full,
      resource: "http://contoso-ns.servicebus.windows.net/hub1/messages/",
      token:
        "SharedAccessSignature sr=http%3A%2F%2Fcontoso-ns.servicebus.windows.net%2Fhub1%2Fmessages%2F&sig=WWC8g8Pnfg%2FP3aTBhdco53qTdgvTAXDXDZZ%2BiRpXXc8%3D&se=1924991999&skn=DefaultFullSharedAccessSignature",
      base64: "WWC8g8Pnfg/P3aTBhdco53qTdgvTAXDXDZZ+iRpXXc8="),
    Vector(
      name: "V3", key: k1, keyName: "RootManageSharedAccessKey",
      resource: "https://contoso-ns.servicebus.windows.net/",
      token:
        "SharedAccessSignature sr=https%3A%2F%2Fcontoso-ns.servicebus.windows.net%2F&sig=lg0%2BQdrCfVYYXzyEQnJHbx%2BAaAu45QY8x0Ii2yy1JIY%3D&se=1924991999&skn=RootManageSharedAccessKey",
      base64: "lg0+QdrCfVYYXzyEQnJHbx+AaAu45QY8x0Ii2yy1JIY="),
    Vector(
      name: "V4", key: k2, keyName: listen,
      resource:
        "https://contoso-ns.servicebus.windows.net/hub1/installations/3f1c6c0e?api-version=2020-06",
      token:
        "SharedAccessSignature sr=https%3a%2f%2fcontoso-ns.servicebus.windows.net%2fhub1%2finstallations%2f3f1c6c0e%3fapi-version%3d2020-06&sig=mezCpSOE%2BumE%2FxTiUG7E278WwWBmJdkOz13BqUZ1OgU%3D&se=1924991999&skn=DefaultListenSharedAccessSignature",
      base64: "mezCpSOE+umE/xTiUG7E278WwWBmJdkOz13BqUZ1OgU="),
    Vector(
      name: "V5", key: k2, keyName: listen,
      resource: "https://contoso-ns.servicebus.chinacloudapi.cn/MyHub",
      token:
        "SharedAccessSignature sr=https%3a%2f%2fcontoso-ns.servicebus.chinacloudapi.cn%2fMyHub&sig=p7BjeqS0xIIjba7SlmpOrmzBMyvfusCTmqfBk6jOH3M%3D&se=1924991999&skn=DefaultListenSharedAccessSignature",
      base64: "p7BjeqS0xIIjba7SlmpOrmzBMyvfusCTmqfBk6jOH3M="),
    Vector(
      name: "V6", key: k3, keyName: "ops key/+&=1",
      resource: "sb://contoso-ns.servicebus.windows.net/hub1",
      token:
        "SharedAccessSignature sig=I0j%2BrcKFL2zOodvMKuQw7OfZPuUV%2FQyBlDpuVDyfKZ8%3D&se=1924991999&skn=ops%20key%2F%2B%26%3D1&sr=sb%3A%2F%2Fcontoso-ns.servicebus.windows.net%2Fhub1",
      base64: "I0j+rcKFL2zOodvMKuQw7OfZPuUV/QyBlDpuVDyfKZ8="),
    Vector(
      name: "V7", key: k1, keyName: full, resource: "https://contoso-ns.servicebus.windows.net",
      token:
        "SharedAccessSignature se=1924991999&sig=%2BpLpnLO%2FWgEXZuh%2BxLa9gPwUFppbUrpHoQuf0xBb%2B6M%3D&skn=DefaultFullSharedAccessSignature&sr=https%3A%2F%2Fcontoso-ns.servicebus.windows.net",
      base64: "+pLpnLO/WgEXZuh+xLa9gPwUFppbUrpHoQuf0xBb+6M="),
  ]

  @Test("every vector verifies with its key and with no other", arguments: vectors)
  func verification(vector: Vector) throws {
    let token = try SharedAccessSignature(parsing: vector.token)
    #expect(token.isSigned(with: vector.key))
    #expect(!token.isSigned(with: vector.key + "x"))
    #expect(!token.isSigned(with: ""))
    #expect(token.keyName == vector.keyName)
    #expect(token.expiresAt == Date(timeIntervalSince1970: 1_924_991_999))
    #expect(Data(token.signature).base64EncodedString() == vector.base64)
    #expect(token.rawResource.percentDecoded == vector.resource)
  }

  @Test("minting gives the vectors' signatures in upper-case hexadecimal", arguments: vectors)
  func minting(vector: Vector) throws {
    let token = SharedAccessSignature(
      resource: vector.resource, keyName: vector.keyName, key: vector.key,
      expiresAt: Date(timeIntervalSince1970: 1_924_991_999.9))
    let theirs = try SharedAccessSignature(parsing: vector.token)
    if theirs.rawResource == token.rawResource { #expect(token.signature == theirs.signature) }
    if ["V2", "V3"].contains(vector.name) { #expect(token.text == vector.token) }
    let read = try SharedAccessSignature(parsing: token.text)
    #expect(read == token)
    #expect(read.isSigned(with: vector.key))
  }

  @Test(
    "tokens that are no tokens",
    arguments: [
      "", "SharedAccessSignature", "SharedAccessSignature ", "Bearer sr=a&sig=b&se=1&skn=c",
      "SharedAccessSignature sig=b&se=1&skn=c", "SharedAccessSignature sr=a&se=1&skn=c",
      "SharedAccessSignature sr=a&sig=b&skn=c", "SharedAccessSignature sr=a&sig=b&se=1",
      "SharedAccessSignature sr=a&sig=b&se=1&skn=c&SE=1",
      "SharedAccessSignature sr=a&sr=a&sig=b&se=1&skn=c",
      "SharedAccessSignature sr=a&sig=b&se=&skn=c", "SharedAccessSignature sr=a&sig=b&se=-1&skn=c",
      "SharedAccessSignature sr=a&sig=b&se=1.5&skn=c",
      "SharedAccessSignature sr=a&sig=b&se=٣&skn=c",
    ])
  func malformed(text: String) {
    #expect(throws: WireFormatError.self) { try SharedAccessSignature(parsing: text) }
  }

  @Test("field names and scheme ignore letter case, unknown fields are passed over")
  func leniency() throws {
    let text = Self.vectors[1].token
      .replacingOccurrences(of: "SharedAccessSignature sr=", with: "sharedaccesssignature  x=1&SR=")
      .replacingOccurrences(of: "&skn=", with: "&x=2&novalue&Skn=")
    #expect(try SharedAccessSignature(parsing: text).isSigned(with: Self.k1))
  }

  @Test("a raw signature, and one whose plus signs became blanks, still verify")
  func rawSignature() throws {
    for sig in [
      "lg0+QdrCfVYYXzyEQnJHbx+AaAu45QY8x0Ii2yy1JIY=",
      "lg0 QdrCfVYYXzyEQnJHbx AaAu45QY8x0Ii2yy1JIY=",
    ] {
      let text =
        "SharedAccessSignature sr=https%3A%2F%2Fcontoso-ns.servicebus.windows.net%2F"
        + "&sig=\(sig)&se=1924991999&skn=RootManageSharedAccessKey"
      #expect(try SharedAccessSignature(parsing: text).isSigned(with: Self.k1))
    }
  }

  @Test("a signature has one spelling: bits that no byte has are zero")
  func trailingBits() throws {
    let token = Self.vectors[2].token
    let changed = token.replacingOccurrences(of: "JIY%3D", with: "JIZ%3D")
    #expect(changed != token)
    #expect(!(try SharedAccessSignature(parsing: changed).isSigned(with: Self.k1)))
  }

  @Test(
    "codes are those of RFC 4231, with a key that is longer than a block, too",
    arguments: [
      (
        [UInt8](repeating: 0x0B, count: 20), "Hi There",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        [UInt8](repeating: 0xAA, count: 131),
        "Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
    ])
  func codes(key: [UInt8], message: String, code: String) {
    let (head, tail) = (Array(message.utf8.prefix(5)), Array(message.utf8.dropFirst(5)))
    #expect(Hex.encode(SigningKey(key).code(of: head[...], tail[...]).bytes) == code)
  }

  @Test(
    "a changed resource, expiry or signature no longer verifies",
    arguments: [
      ("hub1", "hub2"), ("1924991999", "1924992000"), ("sig=%2f", "sig=%2b"), ("%3a", "%3A"),
      ("sig=%2fSZy", "sig="), ("sig=%2fSZy", "sig=!!"),
    ])
  func tampering(part: String, replacement: String) throws {
    let text = Self.vectors[0].token.replacingOccurrences(of: part, with: replacement)
    #expect(!(try SharedAccessSignature(parsing: text).isSigned(with: Self.k1)))
  }

  @Test("an expiry with more digits than fit lies in the far future")
  func hugeExpiry() throws {
    let token = try SharedAccessSignature(
      parsing: "SharedAccessSignature sr=a&sig=b&skn=c&se=" + String(repeating: "9", count: 400))
    #expect(!token.isExpired(at: Date(timeIntervalSince1970: 4e10)))
  }

  @Test(
    "the scope table",
    arguments: [
      ("http://h/hub1/messages/", "/hub1/messages?api-version=2020-06", true),
      ("https://h/", "/anything", true), ("https://h", "/anything/else", true),
      ("https://h/HUB1", "/hub1/registrations", true),
      ("sb://h/hub1", "/hub1/installations/x", true),
      (
        "https://h/hub1/installations/3f1c6c0e?api-version=2020-06",
        "/hub1/installations/3f1c6c0e", true
      ),
      ("https://h/hub1/registrationids/", "/hub1/registrationIDs/", true),
      ("https://h/hub1", "/hub10/messages", false),
      ("https://h/hub1/installations/a", "/hub1/installations/a#b", false),
      ("https://h/hub1/messages", "/hub1/registrations", false),
      ("https://other/hub1", "/hub1/messages", false),
      ("h/hub1", "/hub1/messages", true), ("https://H:8080/hub1", "/hub1/messages", true),
      ("ftp://h/hub1", "/hub1/messages", false), ("https://h/hub1/a/b", "/hub1/a", false),
      ("https://h?x=1", "/hub1", true), ("https://evil@h/hub1", "/hub1", false),
    ])
  func scope(resource: String, path: String, expected: Bool) {
    // No client writes a resource in capitals, but a hub's name may be.
    let isOfItem = resource.split(separator: "/").count > 4
    for raw in [resource, resource.uppercased()]
    where raw == resource || expected && !isOfItem {
      let token = SharedAccessSignature(
        resource: raw, keyName: "n", key: "k", expiresAt: Date(timeIntervalSince1970: 1))
      #expect(token.covers(path: path, hosts: ["h:443"]) == expected)
    }
  }

  @Test(
    "a resource is taken as it stands or with its percent-escapes, and never decoded too often",
    arguments: [
      // The path that was asked for, and the one that was signed.
      (
        "/demo/tags/$InstallationId:%7Babc%7D/registrations?api-version=2020-06",
        "http://h/demo/tags/%24installationid%3a%7babc%7d/registrations/", true
      ),
      (
        "/demo/tags/%24InstallationId%3A%7Babc%7D/registrations",
        "http://h/demo/tags/$installationid:{abc}/registrations", true
      ),
      ("/h/installations/a%40b", "https://h/h/installations/a%40b", true),
      ("/h/installations/a@b", "https://h/h/installations/a%40b", true),
      ("/h/installations/%C3%84", "https://h/h/installations/%c3%a4", true),
      // An escaped slash is part of a name.
      ("/h/installations/a", "https://h/h%2Finstallations/a", false),
      ("/h%2Finstallations/a", "https://h/h/installations/a", false),
      ("/h/tags/a%2Fb", "https://h/h/tags/a/b", false),
      ("/h/tags/a%2Fb", "https://h/h/tags/a%2Fb", true),
      ("/h/tags/a/b", "https://h/h/tags/a%2Fb", false),
      // Somebody's id is the text "%61".
      ("/h/installations/a", "https://h/h/installations/%61", false),
      ("/h/installations/%61", "https://h/h/installations/%61", false),
      ("/h/installations/%2561", "https://h/h/installations/%61", true),
      ("/h/installations/{", "https://h/h/installations/%257B", false),
      ("/h2", "https://h/%68%32", false),
      // A client that lower-cases what it signs does so with all of it; else an id is exact.
      ("/h/installations/PHONE", "https://h/h/installations/phone", true),
      ("/h/installations/PHONE", "https://h/h/installations/PHONE", true),
      ("/h/installations/phone", "https://h/h/installations/PHONE", false),
      ("/h/installations/Phone", "https://h/H/installations/phone", false),
      ("/h/installations/PHONE", "https://h/h/Installations/phone", false),
      ("/h/Installations/phone", "https://h/H/INSTALLATIONS/phone", true),
      ("/h/installations/a%2Fb", "https://h/h/installations/a%2Fb", true),
      ("/h/installations/A%2Fb", "https://h/h/installations/a%2Fb", true),
      ("/h/registrations/%C3%84", "https://h/h/Registrations/%c3%a4", false),
      // Nobody resolves dots.
      ("/h/installations/..", "https://h/h/installations/..", false),
      ("/h/a/../b", "https://h/h", false), ("/h/%2e%2E/b", "https://h/h", false),
      ("/h/%252e%252e/b", "https://h/", false), ("/h/b", "https://h/h/.", false),
      ("/h", "https://h/h/%2e%2e", false), ("/h/...", "https://h/h", true),
    ])
  func escapedScope(path: String, resource: String, expected: Bool) {
    let token = SharedAccessSignature(
      resource: resource, keyName: "n", key: "k", expiresAt: Date(timeIntervalSince1970: 1))
    #expect(token.covers(path: path, hosts: ["h"]) == expected)
  }

  @Test("a policy name with a plus sign is tried both ways")
  func keyNameCandidates() throws {
    let token = try SharedAccessSignature(
      parsing: "SharedAccessSignature sr=a&sig=b&se=1&skn=my+key%2F")
    #expect(token.keyNameCandidates == ["my+key/", "my key/"])
  }

  @Test("neither description nor dump shows a signature")
  func redaction() throws {
    let token = try SharedAccessSignature(parsing: Self.vectors[0].token)
    var dumped = ""
    dump(token, to: &dumped)
    for text in ["\(token)", String(reflecting: token), dumped] { #expect(!text.contains("SZy")) }
  }
}

import Foundation
import NotificationHubs
import Wire

extension FuzzTarget {
  /// `Authorization` header, NUL, path of the request.
  static let accessSignature = FuzzTarget(name: "sas") { bytes in
    let parts = fields(bytes, 2)
    guard let token = try? SharedAccessSignature(parsing: parts[0]) else { return }
    expect(!token.isSigned(with: nobodys), "no input is signed with an unknown key")
    _ = token.isExpired(at: Date(timeIntervalSince1970: 1_700_000_000))
    _ = token.keyNameCandidates
    _ = token.covers(
      path: parts[1],
      hosts: ["localhost", "[::1]:8080", "push.example.com"].map { Array($0.utf8)[...] })
    expect(
      (try? SharedAccessSignature(parsing: token.text))?.rawResource == token.rawResource,
      "a token that was read reads the same again")
    // What we make, we can read.
    let own = SharedAccessSignature(
      resource: token.rawResource, keyName: token.keyName, key: "key", expiresAt: token.expiresAt)
    let again = try? SharedAccessSignature(parsing: own.text)
    expect(again?.isSigned(with: SigningKey("key".utf8)) == true, "a token of our own is signed")
    expect(again?.keyName == token.keyName, "a token of our own keeps its policy")
  }

  private static let nobodys = SigningKey("a key that nobody has".utf8)

  static let connectionString = FuzzTarget(name: "connection-string") { bytes in
    guard let connection = try? ConnectionString(text(bytes)) else { return }
    expect(
      (try? ConnectionString(connection.text)) == connection,
      "a connection string that was read and written reads the same again")
    _ = connection.description
  }

  static let continuationToken = FuzzTarget(name: "continuation-token") { bytes in
    let own = ContinuationToken.encode(bytes.prefix(700))
    if !bytes.isEmpty {
      expect(
        ContinuationToken.decode(own) == Array(bytes.prefix(700)), "a token gives its position back"
      )
      let encoded = own.percentEncoded.percentEncoded
      expect(encoded == own, "a token needs no percent-encoding")
    }
    guard let position = ContinuationToken.decode(text(bytes)) else { return }
    expect(
      position.count <= ContinuationToken.maximumLength, "a position is no longer than a token")
  }
}

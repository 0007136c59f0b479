import Cryptography
package import HubCore

extension WebPushGateway: ProbingGateway {
  /// The pair has been checked when the credential was read, and every push service takes any pair:
  /// only a subscription says which service, and only that service whether it is the pair that the
  /// page subscribed with.
  package func probe() async -> CredentialProbe {
    do {
      _ = try tokens.authorization(for: Origin(host: "push.example.com", port: 443))
    } catch {
      return CredentialProbe(.refused, "The pair cannot sign: \(error.message)")
    }
    return CredentialProbe(
      .untried,
      """
      The pair fits together and signs. No push service of a browser can be asked about it without a \
      subscription: pages must subscribe with this public key, and the first push will tell.
      """)
  }
}

@testable import NotificationHubs

extension SharedAccessSignature {
  func isSigned(with key: String) -> Bool { isSigned(with: SigningKey(key.utf8)) }

  func covers(path: String, hosts: [String]) -> Bool {
    covers(path: Array(path.utf8)[...], hosts: hosts.map { Array($0.utf8)[...] })
  }
}

import Foundation
import HubCore

/// Reloads the configuration of a running server on SIGHUP: hubs with policies and credentials, the
/// files of the HTTPS certificate, `logLevel`. A configuration with an error changes nothing.
struct ConfigurationReload: Sendable {
  private let runtime: HubRuntime
  private let log: HubLog
  /// The configuration at the start of the server.
  private let started: Configuration

  init(_ runtime: HubRuntime, startedWith configuration: Configuration, log: HubLog) {
    self.runtime = runtime
    self.log = log
    started = configuration
  }

  /// - Parameter read: Reads and validates the configuration.
  func take(_ read: () throws -> Configuration) async {
    do {
      let next = try read()
      let certificate = changedCertificate(next)
      // Every error is detected before the first change.
      _ = try certificate?.read()
      if let certificate { try runtime.secure?.take(certificate) }
      try await runtime.apply(next.hubs, log: log)
      if let level = next.text(.logLevel).flatMap(LogLevel.init(rawValue:)) { log.setLevel(level) }
      log(.info, "configuration.read", "the configuration is read again and in force")
      let waiting = Setting.all.filter { waits($0, next, certificate) }
      if !waiting.isEmpty {
        log(
          .warning, "configuration.waits",
          "takes effect with the next start only: " + waiting.map(\.key).joined(separator: ", "))
      }
    } catch {
      log(
        .error, "configuration.refused",
        "the configuration was not taken up, the server goes on as before: \(error)")
    }
  }

  /// The pair of files to reload; `nil` if the server uses no files, before or now.
  private func changedCertificate(_ next: Configuration) -> CertificateFiles? {
    guard started.text(.tlsCertificate) != nil, let certificate = next.text(.tlsCertificate),
      let key = next.text(.tlsKey)
    else { return nil }
    return CertificateFiles(certificate: certificate, key: key)
  }

  /// Whether a setting has changed but only takes effect at the next start.
  /// - Parameter certificate: The previous pair of files.
  private func waits(_ setting: Setting, _ next: Configuration, _ certificate: CertificateFiles?)
    -> Bool
  {
    switch setting.key {
    case Setting.logLevel.key: return false
    case Setting.tlsCertificate.key, Setting.tlsKey.key: if certificate != nil { return false }
    default: break
    }
    return started.entries[setting.key]?.values != next.entries[setting.key]?.values
  }
}

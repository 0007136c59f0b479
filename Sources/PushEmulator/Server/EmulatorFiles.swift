import Cryptography
import Foundation

/// The emulator's certificate authority, newly made or from an earlier run.
enum EmulatorAuthority {
  /// - Parameters:
  ///   - directory: `nil` makes an authority that is not saved.
  ///   - isForProxy: Whether it must be good for the hosts of push services, and for no other.
  /// - Returns: The authority, and the file with its certificate.
  static func load(
    directory: String?, isForProxy: Bool = false
  ) throws -> (authority: CertificateAuthority, file: String?) {
    guard let directory else { return (try make(), nil) }
    let certificateFile = directory + "/ca.pem"
    let keyFile = directory + "/ca-key.pem"
    if let certificate = try PrivateFile.read(certificateFile),
      let key = try PrivateFile.read(keyFile)
    {
      let authority: CertificateAuthority
      do {
        authority = try CertificateAuthority(
          certificate: Certificate(pem: String(decoding: certificate, as: UTF8.self)),
          key: P256PrivateKey(pem: String(decoding: key, as: UTF8.self)))
      } catch {
        throw EmulatorError.file(
          path: certificateFile,
          reason: "is no authority with its key in ca-key.pem (\(error)); remove both files to "
            + "have them made again")
      }
      let hosts = try authority.issueForLocalhost(moreNames: PublicHost.all.map(\.name))
      let fault: String? =
        switch authority.certificate.constraintsPermit(hosts.certificate) {
        case true?: nil
        case false?: "is from an earlier version, and not good for all hosts of the proxy"
        case nil: "could pose as any host of the internet, and the proxy's must not"
        }
      if isForProxy, let fault {
        throw EmulatorError.file(
          path: certificateFile,
          reason: fault + "; remove it and ca-key.pem to have both made again, and let clients "
            + "trust the new one")
      }
      return (authority, certificateFile)
    }
    let authority = try make()
    try PrivateFile.write(Data(authority.key.pem().utf8), to: keyFile)
    try PrivateFile.write(Data(authority.certificate.pem.utf8), to: certificateFile)
    return (authority, certificateFile)
  }

  private static func make() throws(CryptographyError) -> CertificateAuthority {
    try CertificateAuthority(commonName: "Belfry emulator", onlyFor: PublicHost.domains)
  }
}

/// The emulator's state file: read at the start, written after changes of apps or devices and at
/// the end.
struct StateFile: Sendable {
  let path: String

  /// Fills a fresh state from the file, if there is one.
  func load(into state: inout EmulatorState) throws(EmulatorError) {
    guard let data = try PrivateFile.read(path) else { return }
    do {
      let decoder = JSONDecoder()
      decoder.userInfo[Snapshot.services] = state.services
      try decoder.decode(Snapshot.self, from: data).restore(into: &state)
    } catch let damage as Snapshot.Damage {
      throw .file(path: path, reason: damage.reason)
    } catch {
      throw .file(
        path: path,
        reason: "is no state of the emulator (\(error)); move it away to begin with nothing")
    }
  }

  func save(_ snapshot: Snapshot) throws(EmulatorError) {
    let data: Data
    do {
      data = try JSONEncoder().encode(snapshot)
    } catch {
      throw .file(path: path, reason: "cannot be encoded: \(error)")
    }
    try PrivateFile.write(data, to: path)
  }
}

/// Writes files that contain keys: atomically, and readable by their owner only.
enum PrivateFile {
  static func read(_ path: String) throws(EmulatorError) -> Data? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    do {
      return try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      throw .file(path: path, reason: "cannot be read: \(error.localizedDescription)")
    }
  }

  static func write(_ data: Data, to path: String) throws(EmulatorError) {
    let temporary = path + ".new"
    do {
      try FileManager.default.createDirectory(
        at: URL(fileURLWithPath: path).deletingLastPathComponent(),
        withIntermediateDirectories: true)
    } catch {
      throw .file(path: path, reason: "its folder cannot be made: \(error.localizedDescription)")
    }
    guard let file = FileHandle.newPrivate(temporary), (try? file.write(contentsOf: data)) != nil,
      rename(temporary, path) == 0
    else {
      throw .file(path: path, reason: "cannot be written: \(String(cString: strerror(errno)))")
    }
  }
}

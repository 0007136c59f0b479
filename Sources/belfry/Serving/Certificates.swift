import Cryptography
import Foundation
import HTTPClient
import HTTPServer
import HubCore

/// The PEM files of a server's certificate and private key, which may be the same file.
struct CertificateFiles: Sendable {
  let certificate: String
  let key: String

  /// Reads and validates the pair.
  /// - Throws: ``CommandFailure`` with the file and the remedy.
  func read() throws(CommandFailure) -> CertificateIdentity {
    let chain: [Certificate]
    do {
      chain = try Certificate.all(inPEM: text(of: certificate, "tlsCertificate"))
    } catch let error as CryptographyError {
      throw Self.fault("tlsCertificate", certificate, "is no PEM certificate (\(error))")
    } catch {
      throw error as? CommandFailure ?? Self.fault("tlsCertificate", certificate, "\(error)")
    }
    guard let leaf = chain.first else {
      throw Self.fault(
        "tlsCertificate", certificate,
        "holds no PEM block 'CERTIFICATE'; name the file with the server's certificate and its "
          + "issuers, such as fullchain.pem")
    }
    let privateKey: PrivateKey
    do {
      privateKey = try PrivateKey(pem: text(of: key, "tlsKey"))
    } catch let error as CryptographyError {
      throw Self.fault(
        "tlsKey", key, "is no private key in PEM form without a password (\(error))")
    } catch {
      throw error as? CommandFailure ?? Self.fault("tlsKey", key, "\(error)")
    }
    do {
      return try CertificateIdentity(
        certificate: leaf, chain: Array(chain.dropFirst()), privateKey: privateKey)
    } catch {
      throw Self.fault(
        "tlsKey", key,
        "does not belong to the first certificate in \(certificate); name the two files of one pair"
      )
    }
  }

  private func text(of file: String, _ setting: String) throws(CommandFailure) -> String {
    do {
      return try String(contentsOfFile: file, encoding: .utf8)
    } catch {
      throw Self.fault(
        setting, file,
        "cannot be read: \(Configuration.reason(error)). Check the path and who may read it")
    }
  }

  private static func fault(_ setting: String, _ file: String, _ text: String) -> CommandFailure {
    CommandFailure("'\(setting)': \(file) \(text)", exitCode: .usage)
  }

  /// A cheap stamp of the version of the two files, without reading them.
  var stamp: [FileStamp?] { [FileStamp(certificate), FileStamp(key)] }
}

/// The attributes that change when a file is written or replaced, with links followed.
struct FileStamp: Equatable, Sendable {
  private let inode: UInt64
  private let size: Int64
  private let seconds: Int64
  private let nanoseconds: Int64

  /// - Returns: `nil` if there is no such file.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    seconds = Int64(time.tv_sec)
    nanoseconds = Int64(time.tv_nsec)
  }
}

/// The authority of `tlsSelfSigned`, created on first use and stored in the data directory, so that
/// clients only need to trust its certificate once.
struct OwnAuthority: Sendable {
  /// A PEM file with the certificate for clients to trust.
  let certificateFile: String
  private let authority: CertificateAuthority
  private let names: [String]

  /// - Parameter names: Host names and addresses for the server's certificate, in addition to those
  ///   of this machine.
  /// - Throws: ``CommandFailure`` if the files exist but are unusable, or cannot be created.
  init(in data: DataDirectory, names: [String]) throws {
    certificateFile = data.path + "/tls-ca.pem"
    let keyFile = data.path + "/tls-ca-key.pem"
    self.names = names
    let files = FileManager.default
    if files.fileExists(atPath: certificateFile) || files.fileExists(atPath: keyFile) {
      do {
        authority = try CertificateAuthority(
          certificate: Certificate(pem: String(contentsOfFile: certificateFile, encoding: .utf8)),
          key: P256PrivateKey(pem: String(contentsOfFile: keyFile, encoding: .utf8)))
      } catch {
        throw CommandFailure(
          "\(certificateFile) and \(keyFile) are no authority with its key (\(error)); put both "
            + "back, or remove both to have them made again", exitCode: .usage)
      }
    } else {
      authority = try CertificateAuthority(
        commonName: "Belfry at \(ProcessInfo.processInfo.hostName)")
      try OutputFile.write(try authority.key.pem(), to: keyFile)
      try OutputFile.write(authority.certificate.pem, to: certificateFile)
    }
  }

  /// Issues a certificate for this machine and the further names, valid for a year.
  func issue(at now: Date) throws(CryptographyError) -> CertificateIdentity {
    var request = CertificateAuthority.LeafRequest(commonName: "localhost")
    request.clientAuthentication = false
    request.dnsNames = ["localhost"]
    request.ipAddresses = ["127.0.0.1", "::1"]
    for name in names + [ProcessInfo.processInfo.hostName] {
      if IPAddress(name) != nil {
        let isEverywhere = ["0.0.0.0", "::"].contains(name)
        if !isEverywhere, !request.ipAddresses.contains(name) { request.ipAddresses.append(name) }
      } else if !request.dnsNames.contains(name) {
        request.dnsNames.append(name)
      }
    }
    return try authority.issue(request, at: now)
  }
}

import Cryptography
import Foundation

/// The PEM files of a server's certificate and of its private key; both may be one file.
struct CertificateFiles: Sendable {
  let certificate: String
  let key: String

  /// Reads and checks the pair.
  /// - Throws: ``CommandFailure`` that names the file and says what to do.
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

  /// Tells one version of the two files from another, cheaply: reads neither.
  var stamp: [FileStamp?] { [FileStamp(certificate), FileStamp(key)] }
}

/// What changes when a file is written or replaced, links followed.
struct FileStamp: Equatable, Sendable {
  private let inode: UInt64
  private let size: Int64
  private let seconds: Int64
  private let nanoseconds: Int64

  /// - Returns: `nil` when there is no such file.
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

/// The version, defined only here. Packages, the manual page and the image read it from this file.
enum BelfryVersion {
  static let current = "0.1.0"
}

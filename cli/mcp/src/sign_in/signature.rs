//! Signatures of tokens, checked by `ring` for a library without own cryptography. Only asymmetric algorithms exist here.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, new_error};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as keys;

/// Accepted algorithms. A shared secret and `none` are not among them.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Public key with its algorithm.
struct RingVerifier {
    algorithm: Algorithm,
    key: PublicKey,
}

enum PublicKey {
    Rsa(&'static keys::RsaParameters, keys::RsaPublicKeyComponents<Vec<u8>>),
    Other(keys::UnparsedPublicKey<Vec<u8>>),
}

/// Makes `ring` the cryptography of the library, unless the process has chosen another one.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// The server issues no tokens of this form.
fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(new_error(ErrorKind::UnsupportedAlgorithm))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if algorithm.family() != key.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    let other = |kind: &'static dyn keys::VerificationAlgorithm| {
        Ok(PublicKey::Other(keys::UnparsedPublicKey::new(kind, key.try_get_as_bytes()?.to_vec())))
    };
    let rsa = |parameters: &'static keys::RsaParameters| match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => {
            Ok(PublicKey::Rsa(parameters, keys::RsaPublicKeyComponents { n: n.clone(), e: e.clone() }))
        }
        DecodingKeyKind::SecretOrDer(_) => Err(new_error(ErrorKind::InvalidKeyFormat)),
    };
    let key = match algorithm {
        Algorithm::RS256 => rsa(&keys::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => rsa(&keys::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => rsa(&keys::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => rsa(&keys::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => rsa(&keys::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => rsa(&keys::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => other(&keys::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => other(&keys::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => other(&keys::ED25519),
        _ => Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    }?;
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let verified = match &self.key {
            PublicKey::Rsa(parameters, key) => key.verify(parameters, message, signature),
            PublicKey::Other(key) => key.verify(message, signature),
        };
        verified.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of RFC 7515, section A.2.
    const N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR\
                     T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB\
                     dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia\
                     GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const MESSAGE: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const SIGNATURE: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5j\
                             ujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L\
                             07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEU\
                             ipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

    #[test]
    fn the_example_of_the_specification_is_verified_and_a_changed_one_is_not() {
        use base64::Engine;
        use base64::prelude::BASE64_URL_SAFE_NO_PAD;
        let key = DecodingKey::from_rsa_components(N, "AQAB").unwrap();
        let mut signature = BASE64_URL_SAFE_NO_PAD.decode(SIGNATURE).unwrap();
        let check = |algorithm, signature: &Vec<u8>| {
            verifier(&algorithm, &key).is_ok_and(|key| key.verify(MESSAGE.as_bytes(), signature).is_ok())
        };
        assert!(check(Algorithm::RS256, &signature));
        for other in [Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::ES256, Algorithm::HS256] {
            assert!(!check(other, &signature), "{other:?}");
        }
        signature[0] ^= 1;
        assert!(!check(Algorithm::RS256, &signature));
    }
}
